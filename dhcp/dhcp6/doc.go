// Package dhcp6 decides on the replies to DHCPv6 requests (RFC 8415): it translates a
// [resolve.Plan] of IPv6 into messages. It opens no sockets; package dhcp6d serves it on an
// interface. It shares the [dhcp.Exchange] and the lease store with package dhcp.
//
// [Request.Parse] reads a packet, with the messages of up to eight relay agents around the
// client's. [Senders.Judge] decides whether it counts. [Responder.Reply] returns the
// answer; nil is silence.
//
// # Which machine
//
// A machine is found by its MAC, as with IPv4, whatever its DUID: firmware, iPXE and
// operating system of one machine have three. The MAC is, in this order:
//
//   - for a client on the wire, the source of its frame,
//   - the client's link-layer address that a relay agent adds (option 79, RFC 6939),
//   - the one in a link-local address of the form EUI-64, to which a relay agent sends,
//   - the one in a DUID of type 1 or 3,
//   - one made from the DUID, for machines that no node declares.
//
// Interface, remote and subscriber identifier of relay agents (options 18, 37 and 38) are
// the circuitID, remoteID and subscriberID of the config. The DUID is the clientID.
//
// # Answers
//
//	message              address                  answer
//	SOLICIT              its own, or a free one   ADVERTISE, preference 255
//	                     and rapid commit         REPLY, if the subnet has it
//	                     none                     ADVERTISE with NoAddrsAvail
//	REQUEST              its own                  REPLY
//	                     of another network       NotOnLink
//	RENEW, REBIND        its own                  REPLY, others get lifetimes of zero
//	                     none                     NoBinding; silence for REBIND
//	CONFIRM              any on the link          Success, else NotOnLink
//	RELEASE, DECLINE                              REPLY, and as with IPv4
//	INFORMATION-REQUEST                           REPLY without addresses
//
// A machine has one address. All its programs get it, so that it stays the same from the
// firmware to the operating system; a second IA_NA in one message gets NoAddrsAvail, and
// so do temporary addresses and prefixes.
//
// Firmware gets the URL of its loader (option 59, RFC 5970), and for HTTP Boot its vendor
// class (option 16), without which UEFI refuses the answer. iPXE is told by its user class
// (option 15): its vendor class is the firmware's.
//
// Options of the config go to clients that ask for them, as far as the answer stays within
// one packet of 1280 bytes. Boot file parameters (option 60) accompany a loader only.
//
// # What it does not know
//
// The package does not know sockets, the clock, and how a machine is found. It does not
// support temporary addresses, prefix delegation, reconfiguration, authentication, updates of
// DNS and lease queries. In proxy mode it answers INFORMATION-REQUESTs only: there is no
// proxyDHCP for IPv6.
package dhcp6
