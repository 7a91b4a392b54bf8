// Package load generates DHCP load: many machines behind one relay agent, at a given
// rate.
//
// [Run] starts the four-way exchange (DISCOVER, OFFER, REQUEST, ACK) of machine after
// machine at a rate, and counts and times the answers. To a server it looks like perfdhcp:
// the same messages, MACs and giaddr, all from port 67 of one address. In addition it
// reports quantiles of the latency of whole exchanges, makes more load than a server can
// take (sendmmsg and recvmmsg on one thread), and has machines that ask again until they
// have an address.
//
// It knows nothing of drover.
package load
