package api

import (
	"net/http"
	"net/netip"

	"drover/pools"
	"drover/web/answer"
)

// maxAddresses bounds a list of free addresses.
const maxAddresses = 1000

// listAddresses answers with free addresses for nodes, in the subnet of ?link=, an address
// in it or its relay agent. Without link the farm must have one subnet of IPv4.
func (a *API) listAddresses(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	farm := a.Farm.Farm()
	subnet, ok := pools.Subnet{}, false
	if s := query.Get("link"); s != "" {
		link, err := netip.ParseAddr(s)
		if err != nil {
			return answer.BadParameter("link", "", "link %q: want an IP address", s)
		}
		if subnet, ok = farm.SubnetOfLink(link); !ok {
			return answer.BadParameter("link", "", "link %s: no subnet has it", link)
		}
	}
	for _, s := range farm.Config.Subnets {
		if query.Get("link") != "" || s.CIDR.Addr().Is6() {
			continue
		}
		if ok {
			return answer.BadParameter("link", "", "there are several subnets: name one by link, an address in it")
		}
		subnet, ok = s, true
	}
	if !ok {
		return answer.BadRequest("there is no subnet of IPv4")
	}
	taken := map[netip.Addr]bool{}
	now := a.Now()
	for _, l := range a.Leases.List() {
		if s := l.State(now); s == pools.LeaseActive || s == pools.LeaseDeclined {
			taken[l.Address] = true
		}
	}
	answer.JSON(w, http.StatusOK, farm.FreeAddresses(subnet.CIDR, limitOf(query, 1), func(addr netip.Addr) bool { return taken[addr] }))
	return nil
}
