// Package dhcpd serves DHCPv4 on a network interface: the sockets, queues and
// goroutines around package dhcp, which decides the answers.
//
// A packet goes one way:
//
//	socket → intake → queue → worker → send
//	                            ├─ lease is new  → commit  → send
//	                            └─ address is new → ARP probe → send
//
// An intake reads as many packets as have arrived (intake.go), and admits them to
// a bounded queue: not those whose sender may not speak for the machine, and not
// those of a client that asks too often (limit.go). Known machines and REQUESTs go
// first; a full queue drops its oldest (queue.go). A worker asks package dhcp for the
// answer and sends it (worker.go). There is no pause anywhere on this way.
//
// A UDP socket does not say which host sent a packet on the wire. So its filter lets
// pass only what a machine's own card or a confirmed relay agent sent (filter.go), and
// a socket for frames receives the rest, with their MACs: packets of relay agents that
// are not confirmed yet, renewals that were routed, and forged ones. [dhcp.Senders]
// decides. Where it takes an answer to ARP, the packet waits for it (confirm.go, package neighbor).
//
// No worker waits for the disk: an ACK whose lease is not on disk yet is passed to
// one goroutine that waits and then sends (commit). No worker waits for other
// hosts: an OFFER that is kept back for an ARP probe is sent by a timer (probe.go).
// So a disk or a wire that hangs delays only machines with new leases.
//
// Answers go over UDP to relays and to clients that use an address, and in frames
// to all others (frame.go). The kernel says how many packets it dropped since the
// socket's buffer was full ([Server.Dropped]).
//
// The package does not know which machine is asking, nor what an answer holds. It
// runs on Linux, and on Ethernet alone.
package dhcpd
