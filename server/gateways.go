package server

import (
	"context"

	"drover/kube"
	"drover/kube/externalhost/bundle"
	"drover/pools"
	"drover/pools/resolve"
)

// gateways makes what machines of a pool with role gateway run, each time that one boots: the
// bundle of a host outside its cluster, with credentials of its own.
type gateways struct{ clusters *kube.Clusters }

func (g gateways) Gateway(ctx context.Context, p *resolve.Plan) (map[string]pools.File, map[string]pools.Unit, error) {
	hosts, err := g.clusters.Hosts(p.Gateway)
	if err != nil {
		return nil, nil, err
	}
	declared, network, err := hosts.Declared(p.Node)
	if err != nil {
		return nil, nil, err
	}
	podCIDR, err := hosts.State(p.Node)
	if err != nil {
		return nil, nil, err
	}
	c, err := hosts.Credentials(ctx, p.Node, bundle.Lifetime)
	if err != nil {
		return nil, nil, err
	}
	return bundle.Host{
		Name: p.Node, Cluster: p.Gateway, Address: declared.Address, PodCIDR: podCIDR, Network: network, Expose: declared.Expose,
		Server: c.Server, CA: c.CA, Token: c.Token,
	}.Config()
}
