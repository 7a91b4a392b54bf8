package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"drover/cmd/drover/cli"
)

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// services connects to the Service of the API server, which each cluster has: it has the
// first address of the range.
func (h *Host) services(ctx context.Context) {
	a := netip.AddrPortFrom(h.Facts.Network.ServiceCIDR.Masked().Addr().Next(), 443)
	d := net.Dialer{Timeout: h.Timeout}
	c, err := d.DialContext(ctx, "tcp4", a.String())
	if err != nil {
		h.Add("service", cli.Fault, fmt.Sprintf("the Service kubernetes.default at %s does not answer: %v", a, err),
			fmt.Sprintf("systemctl status drover-kube-proxy-%s; hostNetwork.serviceCIDR must be the API server's --service-cluster-ip-range, and the API server reachable from this host at the addresses that the endpoints of that Service have", h.Facts.Cluster))
		return
	}
	_ = c.Close()
	h.Add("service", cli.OK, "the ClusterIP "+a.String()+" answers", "")
}

// exposed connects to the ports of this host that lead to Services.
func (h *Host) exposed(ctx context.Context) {
	for _, e := range h.Facts.Expose {
		a := netip.AddrPortFrom(h.Facts.Address, uint16(e.HostPort))
		c, err := (&net.Dialer{Timeout: h.Timeout}).DialContext(ctx, "tcp4", a.String())
		if err != nil {
			h.Add("proxy", cli.Fault, fmt.Sprintf("port %d, which leads to %s, does not answer: %v", e.HostPort, e.Service, err), "journalctl -u "+h.Facts.ProxyUnit(e)+"; ss -lntp shows whether another program has the port")
			continue
		}
		_ = c.Close()
		h.Add("proxy", cli.OK, fmt.Sprintf("port %d leads to %s", e.HostPort, e.Service), "")
	}
}

// names resolves a name that each cluster has: by the cluster's DNS, and as a program of the
// host does.
func (h *Host) names(ctx context.Context) {
	n := h.Facts.Network
	if !n.DNS.IsValid() || n.Domain == "" {
		return
	}
	name := "kubernetes.default.svc." + n.Domain
	server := netip.AddrPortFrom(n.DNS, 53).String()
	direct := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: h.Timeout}).DialContext(ctx, network, server)
	}}
	ctx, cancel := context.WithTimeout(ctx, 4*h.Timeout)
	defer cancel()
	addrs, err := direct.LookupHost(ctx, name+".")
	if err != nil {
		h.Add("dns", cli.Fault, fmt.Sprintf("the cluster's DNS at %s does not answer for %s: %v", server, name, short(err)),
			"kubectl get service kube-dns -n kube-system shows its address (hostNetwork.dns), and kubectl get pods whether it runs; where the findings of vxlan or service are faults, mend those first")
		return
	}
	h.Add("dns", cli.OK, fmt.Sprintf("the cluster's DNS says that %s is %s", name, strings.Join(addrs, ", ")), "")
	kind, err := os.ReadFile(filepath.Join(h.Dir, "resolver"))
	if err != nil || strings.TrimSpace(string(kind)) == "none" {
		h.Add("resolver", cli.Skipped, "this host has no resolver of the bundle", "install.sh auto sets one up")
		return
	}
	if _, err := (&net.Resolver{PreferGo: true}).LookupHost(ctx, name); err != nil {
		h.Add("resolver", cli.Fault, fmt.Sprintf("the cluster's DNS knows %s, and this host does not: %v", name, short(err)), h.Dir+"/resolver.sh add sets the resolver up again; resolvectl query "+name+" where it is systemd-resolved")
		return
	}
	h.Add("resolver", cli.OK, "programs of this host resolve names of "+n.Domain, "")
}

// short returns the cause of an error of DNS without the name, which is said already.
func short(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e.Err
	}
	return err.Error()
}
