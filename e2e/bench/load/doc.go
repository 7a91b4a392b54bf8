// Package load generates DHCP load: many machines behind one relay agent, at a given
// rate.
//
// [Run] starts the four-way exchange (DISCOVER, OFFER, REQUEST, ACK) of machine
// after machine at a rate, and counts and times what comes back. It looks like
// perfdhcp to a server: the same messages, MACs and giaddr, all from port 67 of
// one address. Beside that it has what perfdhcp lacks: quantiles of the latency
// of whole exchanges, more load than a server can take (sendmmsg and recvmmsg
// on one thread), and machines that ask again until they have an address.
//
// It knows nothing of drover.
package load
