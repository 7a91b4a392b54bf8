// Tftp measures drover's TFTP against tftpd-hpa, atftpd and dnsmasq, all in one
// run: what "make bench-tftp" runs. It needs root, Debian and two processors.
//
// The clients are one thread that asks for a large file with the options of the
// row, compares each block with the file, and acknowledges as RFC 7440 has it.
// The two sides are joined by a pair of veth interfaces between network
// namespaces.
//
// Each server has one processor. It is not the clients', but for a single client
// without delay: the two take turns, and on two processors the time to wake the
// other one up, many times that of a block in a virtual machine, would be all
// that is measured. Go's runtime uses both processors, as it would if
// it were not confined.
//
// The delay of a millisecond is the clients': they hold each ACK back for that
// long. To the server that is the same as a network of that round trip, and it
// works on kernels without netem.
//
// Rounds take turns between the servers. The best peer of a row is the one with
// the highest median; the row's ratio is the median of drover's to that peer's,
// round by round (package gauge). A row that drover does not win is measured
// twice as often again, and all rounds count. A server that knows no windows
// answers block by block, as it would answer the same firmware.
package main
