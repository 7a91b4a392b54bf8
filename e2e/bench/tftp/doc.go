// Tftp measures drover's TFTP against tftpd-hpa, atftpd and dnsmasq, all in one
// run: what "make bench-tftp" runs. It needs root, Debian and two processors.
//
// The clients are one thread that asks for a large file with the options of the
// row, compares each block with the file, and acknowledges as RFC 7440 has it.
// The two sides are joined by a pair of veth interfaces between network
// namespaces.
//
// Each server has one processor, and the clients have the other. Only a single client
// without delay shares the processor of the server: the two take turns, and on two
// processors the time to wake up the other, in a virtual machine many times that of a
// block, would dominate. Go's runtime takes two processors into account, as if it were
// not confined.
//
// The clients make the delay of a millisecond: they hold each ACK back for that time. To the
// server that is a network with this round trip. It works on kernels without netem.
//
// Each round measures all servers in turn. The best peer of a row is the one with the
// highest median. The ratio of the row is the median of the ratios of drover to that peer,
// round by round (package stats). A row that drover does not win gets twice as many more
// rounds, and all rounds count. A server that knows no windows answers block by block, as it
// would answer the same firmware.
package main
