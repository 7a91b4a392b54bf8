// Package explain shows what the server would answer to a machine, and why: its Plan, the
// origin of each value, and the DHCP reply byte for byte.
//
// The rules are in packages resolve and dhcp; this package renders their results. It sends
// no packet and leases nothing: addresses of a range are those of the leases that it is
// given, or guesses.
package explain

import (
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// Server has what a server answers from. Farm and Now must be set.
type Server struct {
	Farm      *resolve.Farm
	Leases    []pools.LeaseInfo
	NextBoots map[string]pools.NextBoot // by node
	Unknown   []pools.Unknown           // unknown machines, with what they reported
	Now       func() time.Time
}

// Explanation is the answer to a machine: its Plan with the origins, and the DHCP reply.
type Explanation struct {
	*resolve.Plan
	Why  resolve.Why `json:"why"`
	DHCP *dhcpReply  `json:"dhcp,omitempty"`
	TLS  *nodeTLS    `json:"nodeTLS,omitempty"`

	DHCP6 *dhcp6Reply `json:"dhcpv6,omitempty"`
}

// Text returns the explanation for people.
func (x Explanation) Text() string {
	text := planText(x.Plan)
	if x.TLS != nil {
		text += "\n" + x.TLS.text()
	}
	if reply := x.Reply(); reply != "" {
		text += "\n" + reply
	}
	return text
}

// Reply returns the DHCP reply as text; empty without one.
func (x Explanation) Reply() string {
	switch {
	case x.DHCP != nil && x.DHCP6 != nil:
		return x.DHCP.text() + "\n" + x.DHCP6.text()
	case x.DHCP != nil:
		return x.DHCP.text()
	case x.DHCP6 != nil:
		return x.DHCP6.text()
	}
	return ""
}
