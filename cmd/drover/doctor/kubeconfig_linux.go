package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"drover/internal/atomicfile"
	"drover/kube/cluster"
)

// kubeconfigs checks the credentials for clusters, and connects to their API servers.
func (d *doctor) kubeconfigs(ctx context.Context) {
	for _, c := range d.farm.Config.Clusters {
		if c.Kubeconfig == "" {
			continue // in a Secret of the admin cluster
		}
		about := "cluster " + c.Name
		data, err := atomicfile.Read(d.farm.Path(c.Kubeconfig), maxFile)
		if err != nil {
			d.add("clusters", fault, about+": "+err.Error(), "put its kubeconfig there: drover cluster prepare says how; the user of the server must be able to read it")
			continue
		}
		k, err := cluster.Inspect(data)
		switch {
		case err != nil:
			d.add("clusters", fault, fmt.Sprintf("%s: %s: %v", about, c.Kubeconfig, err), "put a kubeconfig there")
			continue
		case k.Ends.IsZero():
			d.add("clusters", ok, about+": its credentials have no end that the file tells", "")
		default:
			d.ends("clusters", about+": its credential", k.Ends, "make a new one: docs/clusters.md")
		}
		d.reach(ctx, about, k)
	}
}

// reach connects to the API server of a kubeconfig, unless the way there is a proxy.
func (d *doctor) reach(ctx context.Context, about string, k cluster.Kubeconfig) {
	u, err := url.Parse(k.Server)
	if err != nil || u.Hostname() == "" {
		d.add("clusters", fault, fmt.Sprintf("%s: its server %q is no URL", about, k.Server), "put a kubeconfig there whose server is https://HOST:PORT")
		return
	}
	if p, err := http.ProxyFromEnvironment(&http.Request{URL: u}); k.Proxy || err != nil || p != nil {
		return
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))
	dialer := net.Dialer{Timeout: 3 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		d.add("clusters", fault, fmt.Sprintf("%s: its API server does not answer: %v", about, err), "start it, or mend the server in its kubeconfig, or the way there: routes, DNS, firewalls; curl -k "+k.Server+"/livez asks it")
		return
	}
	_ = conn.Close()
	d.add("clusters", ok, about+": its API server is at "+address, "")
}
