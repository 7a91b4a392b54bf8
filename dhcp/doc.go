// Package dhcp decides on the replies to DHCPv4 requests: it translates a
// [resolve.Plan] into the messages of RFC 2131. It opens no sockets; package dhcpd
// serves it on an interface.
//
// A [Request] is parsed once. [Responder.Reply] turns it into a [Message] and an
// [Exchange]. The Message is the reply, and nil is silence. The Exchange is the
// outcome of the packet, for the log and for metrics.
//
// # Which machine
//
// The package decides neither which machine sent a request nor what it boots. A
// [Resolver] does, once for each packet, from all properties of the sender: the MAC,
// the firmware (options 60, 77, 93 and 175), the client identifier (61), option 82
// of a relay agent, and the network of the machine. The network is that of the first
// of these addresses that is present: the link selection of the relay (82.5,
// RFC 3527), the subnet selection of the client (118, RFC 3011) as far as [Senders] lets
// it count, giaddr, the ciaddr of a client that renews past its relay, the server's own
// address.
//
// A machine without a plan gets silence, never a NAK: another server may know it.
// For machines with a plan the server is authoritative, unless their catch-all pool says
// that it is not.
//
// # Answers
//
//	message    state         address                              answer
//	DISCOVER                                                      OFFER of its address
//	           nothing free                                       silence, logged
//	REQUEST    SELECTING     another server's                     silence
//	           SELECTING     the one offered                      ACK
//	           INIT-REBOOT   its own                              ACK
//	                         of the range, no lease is known      silence, for unknown hardware
//	           RENEWING,     its own                              ACK
//	           REBINDING     one that a node was given before     ACK, and a lease
//	           any           another, or of another network       NAK
//	DECLINE                  its own                              silence, and a warning
//	                         a leased one                         silence; no machine gets it for a while
//	RELEASE                                                       silence; the lease ends
//	INFORM                   any in its network                   ACK without address and times
//	BOOTP                    its own in the config                BOOTREPLY, at most 300 bytes
//
// "Its own" is the address of the plan; without one, a lease from the range of
// its pool. An operating system keeps the address that it has a lease of in each
// of these states. It does so even when the config has meanwhile given the machine
// another: it never gets a NAK for the address that it runs on. A boot program ends
// that lease and gets the address of the plan (address.go). A renewal that a relay
// copies from another network than the lease's gets silence, because the renewal
// itself arrives too.
//
// [Leases] stores only addresses that the config does not give. A reply whose lease
// is not on disk yet has a Wait function. When the lease cannot be stored, the
// client gets silence and asks again.
//
// # Options
//
// The mask, the router, the broadcast address and similar options are those of the
// subnet of the given address. A client gets the options that it asked for. A boot
// program also gets the options that it needs to boot, even unasked. They come in the
// order of the client's list (55). Options of the operator replace the server's. The
// options that identify the client come back (61, 82, 97, 118; in a NAK 61 and 82). An operator can force an option
// on clients that do not ask for it, and give option 43 to a vendor class alone. The loader is in siaddr
// and file as well as in options 66 and 67, because shim and GRUB read only siaddr and file. A
// pad option ends the name in 67 for ROMs that ignore its length; a URL that is longer than the file
// field is in 67 alone. An iPXE without HTTP gets a loader in place of its script. Option 175.176 keeps iPXE
// from waiting for a proxyDHCP server. The answer to the client's FQDN (81,
// RFC 4702) says that the server does not update DNS.
//
// When the options field is full, options go into sname and file (option 52). When
// these are full too, options are left out whole, with a warning (overload.go).
//
// [Message.Destination] returns the receiver of an answer. Answers of a pool with
// broadcast: always are broadcast, unless they go to a relay or to an address in use. An
// address is in use when the client renews from it, not when a ROM has put the address
// of its OFFER into ciaddr.
//
// # Old and odd clients
//
// A boot program by BOOTP (RFC 951) says nothing about itself, and counts as a PC's BIOS,
// unless it sends options 60 or 93. So does a PXE client that names no architecture: the
// ROMs before PXE 2.1. A client on InfiniBand has no MAC in its packets; one made from
// its client identifier stands for it (hardware.go).
//
// A part of a request that is broken does not silence a machine of the farm. It is left
// aside, and the exchange has a warning. So it is when a boot program has no loader.
//
// # Proxy mode
//
// In proxy mode another server gives the addresses. Boot programs get an offer of
// boot data without an address on port 67, and an answer on port 4011
// ([Responder.ReplyBoot]). All other requests get silence. The server reads the
// address that a machine takes from the other server from the machine's REQUESTs.
// It keeps the address as a short lease, so that HTTP and TFTP know the machine at
// it (proxy.go).
//
// # What it does not know
//
// The package does not know sockets, queues, the clock, and how a machine is found.
// It does not support hardware other than Ethernet (types 1 and 6) and InfiniBand, authentication (RFC
// 3118), forced renewal, rapid commit, DDNS, and DHCPv6. It does not know that two nodes swapped addresses
// in the config until each of them has booted.
package dhcp
