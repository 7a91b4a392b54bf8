// Package check finds what keeps a host outside a cluster from its pods and Services, and
// names each fault with its remedy.
//
//	c := check.Host{Facts: facts, Cluster: hosts}
//	findings := c.Examine(ctx)          // on the host, as root
//	findings = check.Server(...)        // on the server, from the cluster's objects
//
// The host tries what its programs do: it sends echo requests through the VXLAN to the
// nodes, small and large ones, connects to pods and Services, and resolves names. An answer
// of a node comes back through the VXLAN, too: it proves both directions. Where nothing
// answers, the kernel, its settings, addresses and routes, and what the Nodes say of
// themselves, tell why. It changes nothing.
package check

import (
	"context"
	"net/netip"
	"time"

	"drover/cmd/drover/cli"
	"drover/kube/externalhost"
	"drover/kube/externalhost/bundle"
)

// Cluster is what a host asks its cluster. An error says that the cluster does not answer, or
// that the host lacks the right.
type Cluster interface {
	Peers(ctx context.Context) ([]externalhost.Peer, error)
	Targets(ctx context.Context, within netip.Prefix) ([]netip.AddrPort, error)
}

// Host examines the host that it runs on.
type Host struct {
	Facts   bundle.Host // of the bundle that is installed
	Dir     string      // of the bundle; default [bundle.Host.Dir]
	Cluster Cluster
	Root    string           // directory that has proc, sys and lib/modules; default /
	Now     func() time.Time // default [time.Now]
	Timeout time.Duration    // for an answer of the network; default 3 s

	cli.Findings
}

// Examine makes all checks.
func (h *Host) Examine(ctx context.Context) cli.Findings {
	if h.Dir == "" {
		h.Dir = h.Facts.Dir()
	}
	if h.Root == "" {
		h.Root = "/"
	}
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Timeout == 0 {
		h.Timeout = 3 * time.Second
	}
	h.kernel()
	h.forwarding()
	h.addresses()
	h.routes()
	if h.apiServer(ctx) {
		h.cluster(ctx)
	} else {
		h.Add("network", cli.Skipped, "without the API server the nodes and pods are not known", "")
	}
	h.services(ctx)
	h.names(ctx)
	h.exposed(ctx)
	return h.Findings
}

// cluster checks the host against the Nodes of the cluster, and reaches nodes and pods.
func (h *Host) cluster(ctx context.Context) {
	peers, err := h.Cluster.Peers(ctx)
	if err != nil {
		h.Add("rights", cli.Fault, err.Error(), "drover cluster prepare "+h.Facts.Cluster+" --admin FILE, on the server, applies the rights of hosts")
		return
	}
	v := view{facts: h.Facts, peers: peers, findings: &h.Findings}
	v.examine()
	if h.link() {
		h.nodes(ctx, v.nodes())
		h.pods(ctx)
	}
}
