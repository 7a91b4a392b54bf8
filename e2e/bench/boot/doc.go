// Boot compares drover with a netboot server made of other programs, in one run ("make
// bench-boot"). It needs root, Debian and two processors.
//
// There are four parts:
//
//	http    drover's HTTP beside nginx (http.go, pull_linux.go)
//	tftp    drover's TFTP beside its peers: package e2e/bench/tftp (tftp.go)
//	initrd  the size of drover's initrd beside mkinitramfs' (initrd.go)
//	boot    a machine from power-on to multi-user, beside dnsmasq, nginx and
//	        live-boot with the same kernel and the same root (guest.go, stack.go)
//
// Everything runs in network namespaces that are removed afterwards.
// docs/benchmarks.md has the setup of each, the measured values, and their limits.
package main
