// Package ra answers IPv6 router solicitations on a network interface with a Router
// Advertisement (RFC 4861) that configures nothing: lifetime 0, no prefix, and neither
// the M nor the O flag. It makes no host a router.
//
// Firmware needs that answer to go on. iPXE solicits routers even when it boots over
// IPv4, and waits 15.75 s for one; an empty advertisement ends that at once. Hosts that
// run take no route, address or DNS server from it.
//
//	s := &ra.Server{Interface: "eth1", Log: log}
//	err := s.Serve(ctx)
//
// A [Server] is silent while another router is on the wire. It learns of routers from
// their advertisements, and asks for them: when it starts, when its interface comes up,
// and each minute while it knows of one. An advertisement counts for three minutes, so
// that a forged one cannot silence the server for longer.
//
// [Server.Content] replaces the empty advertisement. With content the server is a router
// that speaks for itself: it answers beside others and repeats its advertisement.
//
// Packets are read and sent in frames, so that hosts whose kernel has no IPv6 on the
// interface can answer too. message.go reads and writes packets, wire.go decides,
// server.go and link_linux.go are the goroutine and its sockets. Answers leave without
// the random delay of RFC 4861, section 6.2.6, which keeps several routers from
// answering at the same moment: the server answers only where there is no other.
//
// The package does not know which machine solicits: an empty advertisement changes
// nothing for the others. It runs on Linux, and on Ethernet alone.
package ra
