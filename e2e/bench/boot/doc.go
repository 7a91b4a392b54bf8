// Boot measures drover against what an operator would put together by hand, all
// in one run: what "make bench-boot" runs. It needs root, Debian and two
// processors.
//
// There are four parts, each of them a file or two:
//
//	http    drover's HTTP beside nginx (http.go, pull_linux.go)
//	tftp    drover's TFTP beside its peers: package e2e/bench/tftp (tftp.go)
//	initrd  the size of drover's initrd beside mkinitramfs' (initrd.go)
//	boot    a machine from power-on to multi-user, beside dnsmasq, nginx and
//	        live-boot with the same kernel and the same root (guest.go, stack.go)
//
// Everything runs in network namespaces of its own and is gone afterwards.
// docs/benchmarks.md says how each is set up, what is measured and what the
// figures do not tell.
package main
