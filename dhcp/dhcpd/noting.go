package dhcpd

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"drover/dhcp"
	"drover/dhcp/neighbor"
	"drover/pools/resolve"
)

// noting is a lease store for proxy mode, where another server gives the addresses. It
// stores an address when the machine says by ARP that it has it, and not before: a
// REQUEST may name the address of another host, which would then get the script and the
// config of the machine. On the wire a machine asks for the address of this server, and
// so says what it has, before its first request by HTTP or TFTP.
type noting struct {
	dhcp.Leases
	service *service
}

// notePatience is how long a machine has until it uses the address that another
// server gave it: it probes the address first (RFC 5227).
const notePatience = 15 * time.Second

var errManyNoted = errors.New("too many addresses are being confirmed by ARP")

// Commit stores the lease once it is confirmed. There is no error and nothing to wait
// for then.
func (n noting) Commit(p *resolve.Plan, addr netip.Addr, _ time.Time) (wait func() error, err error) {
	v := n.service
	if !v.networks.InSubnet(addr) {
		return nil, fmt.Errorf("%s is in no declared subnet", addr)
	}
	asked := v.neighbors.Ask(neighbor.Host{Addr: addr, MAC: p.MAC}, notePatience, func(ok bool) {
		if !ok {
			v.server.log().Debug("dhcp: an address of another server is not noted: the machine does not answer ARP for it", "mac", p.MAC, "address", addr)
			return
		}
		if _, err := n.Leases.Commit(p, addr, v.server.now()); err != nil {
			v.server.log().Warn("dhcp: an address of another server is not noted", "mac", p.MAC, "address", addr, "error", err)
		}
	})
	if !asked {
		return nil, errManyNoted
	}
	return nil, nil
}
