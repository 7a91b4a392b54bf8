// Package bundle makes the files that a host outside a cluster needs: flanneld and
// kube-proxy as units of systemd, their config and credentials, a timer that renews
// these, a resolver for the cluster's domain, and scripts that install and remove all of
// it.
//
// It makes no objects and talks to no cluster. Everything on the host is in
// /etc/drover-host/CLUSTER, and in units whose names end in CLUSTER.
package bundle

import (
	"archive/tar"
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"drover/pools"
)

// Lifetime is the time that the credentials of a host are valid. The host renews them
// each day.
const Lifetime = 30 * 24 * time.Hour

// Parent is the directory of a host that has a directory for each of its clusters.
const Parent = "/etc/drover-host"

// Host is a host with the facts of its cluster. Its JSON, the file host.json of a bundle, has
// no credentials.
type Host struct {
	Name    string             `json:"name"`
	Cluster string             `json:"cluster"`
	Address netip.Addr         `json:"address"`
	PodCIDR netip.Prefix       `json:"podCIDR"` // of the host
	Network *pools.HostNetwork `json:"network"`
	Expose  []pools.Exposed    `json:"expose,omitempty"`

	Server string `json:"server"` // https://host:port of the API server
	CA     []byte `json:"-"`      // of the API server, in PEM
	Token  string `json:"-"`      // of the host's ServiceAccount
}

// Dir is the directory of the host that has its files.
func (h Host) Dir() string { return path.Join(Parent, h.Cluster) }

// Interface is the name of flannel's VXLAN interface.
func (h Host) Interface() string { return fmt.Sprintf("flannel.%d", h.Network.VNI) }

// Seconds is [Lifetime] in seconds.
func (h Host) Seconds() int { return int(Lifetime / time.Second) }

// NFTables reports whether kube-proxy writes rules of nftables.
func (h Host) NFTables() bool { return h.Network.ProxyMode == pools.ProxyNFTables }

// ProxyUnit is the name of the unit for a port of the host.
func (h Host) ProxyUnit(e pools.Exposed) string {
	return fmt.Sprintf("drover-proxy-%d-%s.service", e.HostPort, h.Cluster)
}

// exposed is a port of a host, for the template of its unit.
type exposed struct {
	Host
	pools.Exposed
}

// Program is an executable that the bundle brings along.
type Program struct {
	Name string // flanneld
	Data []byte
}

// File is a file of a bundle.
type File struct {
	Name string // below the bundle
	Mode int64
	Data []byte
}

//go:embed files
var files embed.FS

// modes are the files made of templates.
var modes = []struct {
	name string
	mode int64
}{
	{"install.sh", 0o755}, {"uninstall.sh", 0o755}, {"renew.sh", 0o755}, {"resolver.sh", 0o755}, {"kubeconfig", 0o600},
	{"flanneld.service", 0o644}, {"kube-proxy.service", 0o644}, {"renew.service", 0o644}, {"renew.timer", 0o644},
}

// Files returns the files of a bundle.
func Files(h Host, programs ...Program) ([]File, error) {
	all, err := template.New("").Funcs(template.FuncMap{"json": quote}).ParseFS(files, "files/*")
	if err != nil {
		return nil, err
	}
	net, err := netConf(h)
	if err != nil {
		return nil, err
	}
	facts, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return nil, err
	}
	out := []File{{"host.json", 0o644, append(facts, '\n')}, {"net-conf.json", 0o644, net}, {"ca.crt", 0o644, h.CA}, {"token", 0o600, []byte(h.Token + "\n")}}
	for _, f := range modes {
		var text bytes.Buffer
		if err := all.ExecuteTemplate(&text, f.name, h); err != nil {
			return nil, err
		}
		out = append(out, File{f.name, f.mode, text.Bytes()})
	}
	for _, e := range h.Expose {
		var text bytes.Buffer
		if err := all.ExecuteTemplate(&text, "proxy.service", exposed{h, e}); err != nil {
			return nil, err
		}
		out = append(out, File{h.ProxyUnit(e), 0o644, text.Bytes()})
	}
	for _, p := range programs {
		out = append(out, File{path.Join("bin", p.Name), 0o755, p.Data})
	}
	return out, nil
}

// Config returns the bundle as files by path and units by name, for a machine that boots with
// them and needs no install.sh.
func (h Host) Config() (map[string]pools.File, map[string]pools.Unit, error) {
	all, err := Files(h)
	if err != nil {
		return nil, nil, err
	}
	names := map[string]string{
		"flanneld.service": "drover-flanneld-%s.service", "kube-proxy.service": "drover-kube-proxy-%s.service",
		"renew.service": "drover-host-renew-%s.service", "renew.timer": "drover-host-renew-%s.timer",
	}
	files, units := map[string]pools.File{}, map[string]pools.Unit{}
	for _, f := range all {
		name, isUnit := names[f.Name]
		switch {
		case f.Name == "install.sh" || f.Name == "uninstall.sh":
		case isUnit:
			units[fmt.Sprintf(name, h.Cluster)] = pools.Unit{Content: string(f.Data), Enable: f.Name != "renew.service"}
		case strings.HasSuffix(f.Name, ".service"):
			units[f.Name] = pools.Unit{Content: string(f.Data), Enable: true}
		default:
			files[path.Join(h.Dir(), f.Name)] = pools.File{Content: string(f.Data), Mode: fmt.Sprintf("%04o", f.Mode)}
		}
	}
	units[fmt.Sprintf("drover-resolver-%s.service", h.Cluster)] = pools.Unit{Enable: true, Content: fmt.Sprintf(resolverUnit, h.Cluster, h.Dir())}
	return files, units, nil
}

// resolverUnit sets up the resolver of a machine at its boot: its root is in RAM.
const resolverUnit = `[Unit]
Description=Names of cluster %[1]s (drover)
After=systemd-resolved.service dnsmasq.service
Before=drover-flanneld-%[1]s.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=%[2]s/resolver.sh add auto

[Install]
WantedBy=multi-user.target
`

// Read reads the facts and the credentials that an installed bundle has left in a directory.
func Read(dir string) (h Host, err error) {
	facts, err := os.ReadFile(filepath.Join(dir, "host.json"))
	if err == nil {
		if err = json.Unmarshal(facts, &h); err == nil && (h.Network == nil || h.Name == "" || !h.PodCIDR.IsValid() || !h.Network.ServiceCIDR.IsValid()) {
			err = errors.New("it is not of a bundle")
		}
		if err != nil {
			err = fmt.Errorf("%s/host.json: %w", dir, err)
		}
	}
	if err == nil {
		h.CA, err = os.ReadFile(filepath.Join(dir, "ca.crt"))
	}
	if err == nil {
		var token []byte
		token, err = os.ReadFile(filepath.Join(dir, "token"))
		h.Token = strings.TrimSpace(string(token))
	}
	return h, err
}

// netConf returns flannel's config. The host has no pods, so flannel needs no rules there.
func netConf(h Host) ([]byte, error) {
	type backend struct {
		Type string
		VNI  int
		Port int
	}
	text, err := json.MarshalIndent(struct {
		Network        string
		EnableNFTables bool
		Backend        backend
	}{h.Network.PodCIDR.String(), h.NFTables(), backend{"vxlan", h.Network.VNI, h.Network.Port}}, "", "  ")
	return append(text, '\n'), err
}

func quote(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// Write writes a bundle as a tar, in a folder with the name of the host. It has
// credentials: its reader must be the host's root alone.
func Write(w io.Writer, h Host, now time.Time, programs ...Program) error {
	all, err := Files(h, programs...)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	for _, f := range all {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(h.Name, f.Name), Mode: f.Mode, Size: int64(len(f.Data)), ModTime: now.Truncate(time.Second)}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(f.Data); err != nil {
			return err
		}
	}
	return t.Close()
}
