package kubefarm

import (
	"net"
	"net/netip"
	"strconv"

	"drover/migrate"
)

// endpoint is where nodes reach an API server, with the values that say so.
type endpoint struct {
	host              string // of controlPlaneEndpoint, if it is a name
	address           netip.Addr
	port              int
	addressAt, portAt *migrate.Value
	nameAt            *migrate.Value
}

// endpointOf returns the endpoint of a control plane: controlPlaneEndpoint, or the address that
// its Service has or that it advertises, and the port of the Service, of a NodePort the outer
// one.
func endpointOf(v *migrate.Value) (e endpoint) {
	service := v.Get("apiServer", "service")
	named := v.Get("controlPlaneEndpoint")
	host, port, err := net.SplitHostPort(named.String())
	if err != nil {
		host, port = named.String(), ""
	}
	candidates := []*migrate.Value{service.Get("loadBalancerIP"), v.Get("apiServer", "extraArgs", "advertise-address")}
	if a, err := netip.ParseAddr(host); err == nil {
		e.address, e.addressAt = a, named
	} else if host != "" {
		e.host, e.nameAt = host, named
	}
	if service.Get("type").String() == "NodePort" {
		candidates = append(candidates, v.Get("apiServer", "certSANs", "ipAddresses").List()...)
	}
	for _, at := range candidates {
		if a, err := netip.ParseAddr(at.String()); err == nil && !e.address.IsValid() {
			e.address, e.addressAt = a, at
		}
	}
	e.portAt = service.Get("port")
	if service.Get("type").String() == "NodePort" {
		e.portAt = service.Get("nodePort")
	}
	if text := e.portAt.String(); text != "" {
		port = text
	} else if port != "" {
		e.portAt = named
	}
	if e.port, _ = strconv.Atoi(port); e.port == 0 {
		e.port, e.portAt = 6443, nil
	}
	return e
}
