// Record records the messages of real DHCP clients: the first DISCOVER and the REQUEST
// after it, of network boot firmware in emulated machines and of operating systems, for
// the golden files of package dhcp.
//
//	go run ./e2e/record [-out DIR] [NAME]...
//
// Each client runs in a rack of its own, a network namespace with no way out,
// against dnsmasq: what a client sends is then not shaped by the server that is
// tested with it. dnsmasq gives the addresses that the tests of package dhcp
// give, so that their server can answer the REQUESTs too.
//
// It needs root and, beside what the lab takes, the Debian packages
// qemu-system-arm, qemu-efi-aarch64, u-boot-qemu, ipxe, klibc-utils,
// isc-dhcp-client, udhcpc, dhcpcd-base and dnsmasq-base. None of them is needed
// to run the tests.
package main
