package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"drover/dhcp"
	"drover/httpboot"
	"drover/imagebuild"
	"drover/pools"
	"drover/pools/kube"
	"drover/pools/state"
	"drover/tftp"
	"drover/web"
)

// imageDir shows the images on disk to httpboot.
type imageDir struct{ dir *imagebuild.Dir }

func (d imageDir) Image(ref string) (httpboot.Image, error) {
	i, err := d.dir.Lookup(ref)
	if err != nil {
		return httpboot.Image{}, err
	}
	file := func(name string) httpboot.FileInfo {
		return httpboot.FileInfo{Name: name, Size: i.Files[name].Size, SHA256: i.Files[name].SHA256}
	}
	return httpboot.Image{
		Name: i.Name, Generation: i.ID, Dir: i.Path,
		Kernel: file(imagebuild.KernelFile), Initrd: file(imagebuild.InitrdFile), Squashfs: file(imagebuild.SquashfsFile),
	}, nil
}

// addresses knows who has which address: declared nodes by the farm, the
// others by their leases.
type addresses struct {
	live  *pools.Live
	store *state.Store
}

func (a *addresses) AddressOf(mac pools.MAC) (netip.Addr, bool) { return a.store.Leases.AddressOf(mac) }

// MACAt returns the machine at an address. A node with several MACs has one
// address; the MAC is then the one that booted last.
func (a *addresses) MACAt(addr netip.Addr) (pools.MAC, bool) {
	n, ok := a.live.Farm().NodeAt(addr)
	if !ok {
		return a.store.Leases.MACAt(addr)
	}
	booting, last := n.MACs[0], time.Time{}
	for _, m := range n.MACs {
		if b, ok := a.store.Boots.Current(m); ok && b.Started.After(last) {
			booting, last = m, b.Started
		}
	}
	return booting, true
}

// exchange is told of every DHCP packet.
func (s *server) exchange(e dhcp.Exchange) {
	s.metrics.exchange(e)
	if e.Netboot && e.Type == "DISCOVER" && e.Reply != "" {
		s.store.Boots.Discover(e.Plan, e.Time)
	}
}

// transfer is told of every TFTP transfer.
func (s *server) transfer(t tftp.Transfer) {
	s.metrics.transfer(t)
	mac, ok := (&addresses{s.live, s.store}).MACAt(t.Client)
	if t.Err == nil && ok {
		s.step(mac, pools.Event{Step: pools.StepLoader, Detail: t.File})
	}
}

// nodeReady is told when a node that joined is Ready.
func (s *server) nodeReady(p *pools.Plan, _ time.Time) {
	s.step(p.MAC, pools.Event{Step: pools.StepReady})
}

// step notes what the server itself saw of a boot.
func (s *server) step(mac pools.MAC, e pools.Event) {
	if err := s.store.Boots.Step(mac, "", e); err != nil {
		s.log.Debug("step of no boot", "mac", mac, "step", e.Step, "err", err)
	}
}

// readiness finds what is missing.
type readiness struct {
	live     *pools.Live
	images   *imagebuild.Dir
	loaders  string
	clusters *kube.Clusters
}

// problems is everything that is not ready.
func (r *readiness) problems(ctx context.Context) []web.Problem {
	out := r.local()
	for name, err := range r.clusters.Check(ctx) {
		if err != nil {
			out = append(out, web.Problem{Part: "cluster " + name, Problem: err.Error()})
		}
	}
	slices.SortFunc(out, func(a, b web.Problem) int { return cmp.Compare(a.Part, b.Part) })
	return out
}

// local is what is missing on this host.
func (r *readiness) local() (out []web.Problem) {
	seen := map[string]bool{}
	for _, p := range r.live.Farm().Config.Pools {
		if seen[p.Image] {
			continue
		}
		seen[p.Image] = true
		if _, err := r.images.Lookup(p.Image); err != nil {
			out = append(out, web.Problem{Part: "image " + p.Image, Problem: fmt.Sprintf("%v: build it with drover image build --name %s", err, p.Image)})
		}
	}
	for _, f := range []pools.Firmware{pools.BIOS, pools.UEFIx64} {
		if _, err := os.Stat(filepath.Join(r.loaders, f.Loader())); err != nil {
			out = append(out, web.Problem{Part: "loader for " + string(f), Problem: fmt.Sprintf("%v: copy it there from your distribution's ipxe package", err)})
		}
	}
	return out
}
