package api

import (
	"net/http"
	"net/netip"

	"drover/pools"
	"drover/web/answer"
)

// maxAddresses bounds a list of free addresses.
const maxAddresses = 1000

// listAddresses answers with free addresses for nodes, in the subnet of ?link=.
func (a *API) listAddresses(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	free, err := a.FreeAddresses(query.Get("link"), limitOf(query, 1))
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, free)
	return nil
}

// FreeAddresses returns up to n free addresses for nodes, the lowest first: in the subnet of
// link, an address in it or its relay agent. Without link the farm must have one subnet of
// IPv4.
func (a *API) FreeAddresses(link string, n int) ([]netip.Addr, error) {
	farm := a.Farm.Farm()
	subnet, ok := pools.Subnet{}, false
	if link != "" {
		at, err := netip.ParseAddr(link)
		if err != nil {
			return nil, answer.BadParameter("link", "", "link %q: want an IP address", link)
		}
		if subnet, ok = farm.SubnetOfLink(at); !ok {
			return nil, answer.BadParameter("link", "", "link %s: no subnet has it", at)
		}
	}
	for _, s := range farm.Config.Subnets {
		if link != "" || s.CIDR.Addr().Is6() {
			continue
		}
		if ok {
			return nil, answer.BadParameter("link", "", "there are several subnets: name one by link, an address in it")
		}
		subnet, ok = s, true
	}
	if !ok {
		return nil, answer.BadRequest("there is no subnet of IPv4")
	}
	taken := map[netip.Addr]bool{}
	now := a.Now()
	for _, l := range a.Leases.List() {
		if s := l.State(now); s == pools.LeaseActive || s == pools.LeaseDeclined {
			taken[l.Address] = true
		}
	}
	return farm.FreeAddresses(subnet.CIDR, n, func(addr netip.Addr) bool { return taken[addr] }), nil
}
