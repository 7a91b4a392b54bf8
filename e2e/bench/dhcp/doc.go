// Dhcp measures drover's DHCP against ISC Kea and dnsmasq, all in one run: what
// "make bench-dhcp" runs. It needs root, Debian and two processors.
//
// Each server gets the same range, lease time, machines and wire, an empty
// store on the same file system, and a processor of its own; perfdhcp and the
// generator of package load have the other one. docs/benchmarks.md says how
// each is set up, what is measured and what the figures do not tell.
package main
