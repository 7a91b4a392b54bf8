// Package dhcp is the DHCPv4 server of drover: it turns a [pools.Plan] into the
// answers of RFC 2131.
//
// A [Server] serves one interface. Listen opens its sockets, Serve reads
// packets into a bounded queue, workers answer them. What a packet comes to is
// decided in one place, [Server.Reply], which knows no sockets: a request goes
// in, a reply comes out, nil is silence. Each packet ends in one [Exchange],
// which is logged and handed to whoever counts.
//
// Whose machine it is and what it boots is not decided here: the [Resolver] is
// asked with the MAC and the kind of firmware, which this package finds out
// from options 60, 77, 93 and 175 (client.go). A plan without an address
// leases one from [Leases]; its lease is durable before the ACK leaves.
//
// A machine that is none of ours gets silence, never a NAK: another server may
// know it. One that is ours gets a NAK for an address that is not its own,
// whoever gave it (the server is authoritative for its machines).
//
// Where an answer goes is in send.go, what it holds in options.go: what the
// client asked for and what booting needs whether it asked or not. An option
// that does not fit is left out whole, with a warning, never cut.
//
// The package does not know: several subnets behind relays (the plan's subnet
// is taken as the client's), identities other than the MAC, proxyDHCP,
// quarantine of declined addresses, options in the file and sname fields
// (RFC 2131 overload), BOOTP, DHCPv6. It runs on Linux.
package dhcp
