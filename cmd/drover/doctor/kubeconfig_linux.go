package doctor

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"drover/pools/atomicfile"
	"drover/pools/config/decode"
)

// kubeconfig has the parts of a kubeconfig that doctor reads.
type kubeconfig struct {
	Current  string `json:"current-context"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server string `json:"server"`
			Proxy  string `json:"proxy-url"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		User struct {
			Certificate string `json:"client-certificate-data"`
			Token       string `json:"token"`
		} `json:"user"`
	} `json:"users"`
}

func parseKubeconfig(data []byte) (k kubeconfig, err error) {
	docs, err := decode.Documents("kubeconfig", data)
	if err != nil || len(docs) != 1 || json.Unmarshal(docs[0], &k) != nil || len(k.Clusters) == 0 {
		return k, errors.New("it is not a kubeconfig")
	}
	return k, nil
}

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
		k, err := parseKubeconfig(data)
		var end time.Time
		if err == nil {
			end, err = k.end()
		}
		switch {
		case err != nil:
			d.add("clusters", fault, fmt.Sprintf("%s: %s: %v", about, c.Kubeconfig, err), "put a kubeconfig there")
			continue
		case end.IsZero():
			d.add("clusters", ok, about+": its credentials have no end that the file tells", "")
		default:
			d.ends("clusters", about+": its credential", end, "make a new one: docs/clusters.md")
		}
		d.reach(ctx, about, &k)
	}
}

// reach connects to the API server of a kubeconfig, unless the way there is a proxy.
func (d *doctor) reach(ctx context.Context, about string, k *kubeconfig) {
	server, proxy := k.server()
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		d.add("clusters", fault, fmt.Sprintf("%s: its server %q is no URL", about, server), "put a kubeconfig there whose server is https://HOST:PORT")
		return
	}
	if p, err := http.ProxyFromEnvironment(&http.Request{URL: u}); proxy || err != nil || p != nil {
		return
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))
	dialer := net.Dialer{Timeout: 3 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		d.add("clusters", fault, fmt.Sprintf("%s: its API server does not answer: %v", about, err), "start it, or mend the server in its kubeconfig, or the way there: routes, DNS, firewalls; curl -k "+server+"/livez asks it")
		return
	}
	_ = conn.Close()
	d.add("clusters", ok, about+": its API server is at "+address, "")
}

// server returns the URL of the current context's API server, else of the first one, and
// whether a proxy leads there.
func (k *kubeconfig) server() (server string, proxy bool) {
	name := ""
	for _, c := range k.Contexts {
		if c.Name == k.Current {
			name = c.Context.Cluster
		}
	}
	for _, c := range k.Clusters {
		if c.Name == name {
			return c.Cluster.Server, c.Cluster.Proxy != ""
		}
	}
	first := k.Clusters[0].Cluster
	return first.Server, first.Proxy != ""
}

// end returns the end of the first credential; the zero time if the file does not tell.
func (k *kubeconfig) end() (end time.Time, err error) {
	for _, u := range k.Users {
		if u.User.Certificate != "" {
			text, err := base64.StdEncoding.DecodeString(u.User.Certificate)
			if err != nil {
				return end, errors.New("its client certificate is not base64")
			}
			return certificateEnd(text)
		}
		if u.User.Token != "" {
			return tokenEnd(u.User.Token), nil
		}
	}
	return end, nil
}
