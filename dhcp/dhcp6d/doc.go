// Package dhcp6d serves DHCPv6 on a network interface: the sockets, queues and goroutines
// around package dhcp6, which decides the answers.
//
// A packet goes one way:
//
//	frame → intake → queue → worker → send
//	                            └─ lease is new → commit → send
//
// Packets are read as frames: only a frame has the MAC of its sender, by which a machine is
// found. The UDP socket holds port 547, joins the multicast groups and sends; its filter
// lets nothing in. An intake drops packets that [dhcp6.Senders] does not let count, for some once the
// sender has answered neighbour discovery, or has not (package neighbor), and
// clients that ask too often. Machines that are declared have queues of their own, beside
// those of strangers, and SOLICITs wait apart from the messages that end an exchange. In an
// overload the kernel drops a share of the SOLICITs (package shed). A lease that is not on
// disk yet delays its own answer only.
//
// It answers clients on the wire while the interface has an address in a declared IPv6
// subnet, and relay agents always.
package dhcp6d
