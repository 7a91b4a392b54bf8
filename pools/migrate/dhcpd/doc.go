// Package dhcpd reads the configs of ISC's DHCP server, dhcpd.conf and dhcpd6.conf.
//
// Subnets, shared networks, pools, groups, hosts and options are taken over. A group
// becomes a tag of its hosts, and options of a subnet become a tag of its machines. Of
// conditions (if option arch = ...) and classes the boot files become rules of loaders.
package dhcpd
