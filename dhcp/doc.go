// Package dhcp decides what a DHCPv4 request is answered with: it translates a
// [pools.Plan] into the replies of RFC 2131. It knows no sockets; package dhcpd
// serves it on an interface.
//
// A [Request] is parsed once. [Responder.Reply] turns it into a [Message] and an
// [Exchange]: a request goes in, a reply comes out, nil is silence. The Exchange is
// what the packet came to, for the log and for metrics.
//
// # Which machine
//
// The package decides neither which machine sent a request nor what it boots. A
// [Resolver] does, once for each packet, from all properties of the sender: the MAC,
// the firmware (options 60, 77, 93 and 175), the client identifier (61), option 82
// of a relay agent, and the network that the machine is on. That is the link
// selection of the relay (82.5, RFC 3527), else the subnet selection of the client
// (118, RFC 3011), else giaddr, else the ciaddr of a client that renews past its
// relay, else the server's own address.
//
// A machine without a plan gets silence, never a NAK: another server may know it.
// For machines with a plan the server is authoritative.
//
// # What is answered
//
//	message    state         address                              answer
//	DISCOVER                                                      OFFER of its address
//	           nothing free                                       silence, logged
//	REQUEST    SELECTING     another server's                     silence
//	           SELECTING     the one offered                      ACK
//	           INIT-REBOOT   its own                              ACK
//	           RENEWING,     its own                              ACK
//	           REBINDING     one that a node was given before     ACK, and a lease
//	           any           another, or of another wire          NAK
//	DECLINE                  its own                              silence, and a warning
//	                         a leased one                         silence; no machine gets it for a while
//	RELEASE                                                       silence; the lease ends
//	INFORM                   any that is on its wire              ACK without address and times
//
// "Its own" is the address of the plan; without one, a lease from the range of
// its pool. An operating system keeps the address that it has a lease of, in
// each of these states, even when the config has meanwhile given the machine
// another: it never gets a NAK for the address that it runs on. A boot program ends
// that lease and gets the address of the plan (address.go). A renewal that a relay
// copies from another network than the lease's gets silence: the renewal itself
// arrives too.
//
// [Leases] stores only addresses that the config does not give. A reply whose lease
// is not on disk yet has a Wait function; when the lease cannot be stored the client
// gets silence, and asks again.
//
// # What an answer holds
//
// Mask, router, broadcast address and the like are of the subnet of the address
// given. A client gets the options that it asked for, and a boot program those that
// it needs to boot whether it asked or not; options of the operator replace the
// server's. The options that identify the client come back (61, 82, 97, 118). The
// loader is in siaddr and file as well as in options 66 and 67, because shim and
// GRUB read no others. iPXE is told not to wait for a proxyDHCP server (175.176).
// The answer to the client's FQDN (81, RFC 4702) says that the server does not
// update DNS.
//
// When the options field is full, options go into sname and file (option 52),
// and then are left out, whole and with a warning (overload.go).
//
// [Message.Destination] is where an answer goes. Answers of a pool with broadcast:
// always are broadcast, unless they go to a relay or to an address in use.
//
// # Proxy mode
//
// Beside another server that gives the addresses, boot programs are offered boot
// data without an address on port 67, and answered on port 4011
// ([Responder.ReplyBoot]). All other requests get silence. The address that a
// machine takes from the other server is read from its REQUESTs and kept as a short
// lease, so that HTTP and TFTP know the machine at it (proxy.go).
//
// # What it does not know
//
// Sockets, queues and the clock; how a machine is found; requests that put their own
// options into sname and file; BOOTP; hardware other than Ethernet; authentication
// (RFC 3118); forced renewal; rapid commit; DDNS; DHCPv6. It does not know that two
// nodes swapped addresses in the config until each of them has booted.
package dhcp
