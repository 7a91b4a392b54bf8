// Package dnsmasq reads the configs of dnsmasq (dnsmasq.conf, and the files of
// dhcp-hostsfile and dhcp-optsfile), and the objects of dnsmasq-controller.
//
// dnsmasq has tags too, and sets them for a host, for a range, or by what a client sends.
// Those of hosts and ranges are known beforehand: an option for them becomes a tag of
// drover. Those of a client become a rule of loaders for boot files, and the match of a
// pool or a node for ranges; for other options drover has no counterpart.
//
// DNS is no matter of drover: its options are noted and left.
package dnsmasq
