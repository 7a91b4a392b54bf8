// Package dhcp is the DHCPv4 server of drover: it turns a [pools.Plan] into the
// answers of RFC 2131.
//
// A [Server] serves one interface. Listen opens its sockets; Serve reads
// packets into a bounded queue, from which workers answer them. What a packet
// comes to is decided in one place, [Server.Reply], which knows no sockets: a
// request goes in, a reply comes out, nil is silence. Each packet ends in one
// [Exchange], which is logged and handed to whoever counts.
//
// # Whose machine
//
// Whose machine it is and what it boots is not decided here. The [Resolver] is
// asked with all that a request tells of its sender: the MAC, the firmware
// (options 60, 77, 93 and 175), the client identifier (61), what a relay agent
// says in option 82, and the network that it asks from. That is the link
// selection of the relay (82.5, RFC 3527), else the subnet selection of the
// client (118, RFC 3011), else giaddr, else the ciaddr of a client that renews
// past its relay, else our own address.
//
// A machine without a plan gets silence, never a NAK: another server may know
// it. For those that have one the server is authoritative.
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
//	DECLINE                  its own                              silence, logged loudly
//	                         a leased one                         silence; nobody gets it for a while
//	RELEASE                                                       silence; the lease ends
//	INFORM                   any that is on its wire              ACK without address and times
//
// "Its own" is the address of the plan; without one, a lease from the range of
// its pool. An operating system keeps the address that it has a lease of, in
// each of these states, even when the config has meanwhile given the machine
// another: it is never refused what it runs on. A boot program ends that lease
// and gets what the plan says (address.go). A renewal of a lease that a relay
// copies from the wrong side gets silence: the renewal itself comes beside it.
//
// [Leases] are asked only about addresses that the config does not give. A
// lease is on disk before its ACK leaves; when it cannot be stored there is
// silence, and the client asks again.
//
// # What an answer holds
//
// Mask, router, broadcast address and the like are of the subnet of the address
// given. A client gets the options that it asked for, and a boot program what
// booting needs whether it asked or not; options of the operator stand against
// ours. What the client identified itself with comes back (61, 82, 97, 118). The
// loader is in siaddr and file as well as in options 66 and 67, because shim and
// GRUB look nowhere else. iPXE is told not to wait for a proxyDHCP server
// (175.176). An answer to the client's FQDN (81, RFC 4702) says that nobody here
// updates DNS.
//
// When the options field is full, options go into sname and file (option 52),
// and then are left out, whole and with a warning (overload.go).
//
// Where an answer goes is in send.go. Those of a pool with broadcast: always go
// to everybody, unless they go to a relay or to an address in use.
//
// # Proxy mode
//
// Beside another server that gives the addresses, boot programs are offered boot
// data without an address on port 67, and answered on port 4011
// ([Server.ReplyBoot]). All else is silence. Which address a machine takes from
// the other server is seen in its REQUESTs and kept as a short lease, so that
// HTTP and TFTP know whose it is (proxy.go).
//
// # What it does not know
//
// Requests that put their own options into sname and file; BOOTP; hardware
// other than Ethernet; authentication (RFC 3118); forced renewal; rapid commit;
// DDNS; DHCPv6. It does not know that two nodes swapped addresses in the config
// until each of them has booted. It runs on Linux.
package dhcp
