// Package dnsmasq reads the configs of dnsmasq (dnsmasq.conf, and the files of
// dhcp-hostsfile and dhcp-optsfile), and the objects of dnsmasq-controller.
//
// dnsmasq has tags too, and sets them for a host, for a range, or by what a client sends.
// Those of hosts and ranges are known beforehand: an option for them becomes a tag of
// drover. Those of a client become the match of a pool or a node for ranges; for options
// drover has no counterpart. Boot files are not taken over: drover has its own loaders.
//
// DNS is no matter of drover: its options are noted and left.
package dnsmasq
