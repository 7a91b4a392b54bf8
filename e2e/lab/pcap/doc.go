// Package pcap reads captures of tcpdump and reassembles their TCP streams.
//
// A [Reader] gives the frames of a capture file, [Parse] takes a frame apart,
// and [Streams] hands the payload of each direction of each TCP connection, in
// order and without repeats, to a writer of the caller's. A [Needles] is such a
// writer: it finds byte strings also where they lie across segments.
//
// It knows Ethernet, IPv4, IPv6, TCP and UDP, and nothing above. A capture with gaps
// is an error, not a shorter stream: a search for secrets in it would otherwise find
// nothing wrongly.
package pcap
