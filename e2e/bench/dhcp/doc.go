// Dhcp compares drover's DHCP with ISC Kea and dnsmasq, in one run ("make bench-dhcp").
// It needs root, Debian and two processors.
//
// Each server has the same range, lease time, machines and wire, an empty store on the same
// file system, and a processor of its own. perfdhcp and the generator of package load run on
// the other one. docs/benchmarks.md has the
// setup of each, the measured values, and their limits.
package main
