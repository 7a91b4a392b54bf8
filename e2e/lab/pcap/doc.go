// Package pcap reads what tcpdump wrote and puts the bytes of its TCP streams
// back in order.
//
// A [Reader] gives the frames of a capture file, [Parse] takes a frame apart,
// and [Streams] hands the payload of each direction of each TCP connection, in
// order and without repeats, to a writer of the caller's. A [Needles] is such a
// writer: it finds byte strings also where they lie across segments.
//
// It knows Ethernet, IPv4, TCP and UDP, and nothing above. A capture with holes
// is an error, not a shorter stream: who searches it for what must not be there
// would else be told that all is well.
package pcap
