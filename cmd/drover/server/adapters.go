package server

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover/dhcp"
	"drover/httpboot"
	"drover/imagebuild"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/pools/kube"
	"drover/pools/state"
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
	live  *config.Live
	store *state.Store
}

func (a *addresses) AddressOf(mac pools.MAC) (netip.Addr, bool) { return a.store.Leases.AddressOf(mac) }

// MACAt returns the machine at an address. A node with several MACs has one
// address; the MAC is then the one that booted last. A node without MACs has
// that of the machine that it was last.
func (a *addresses) MACAt(addr netip.Addr) (pools.MAC, bool) {
	mac, leased := a.store.Leases.MACAt(addr)
	n, declared := a.live.Farm().NodeAt(addr)
	if !declared || len(n.MACs) == 0 {
		return mac, leased
	}
	booting, last := n.MACs[0], time.Time{}
	for _, m := range n.MACs {
		if b, ok := a.store.Boots.Current(m); ok && b.Started.After(last) {
			booting, last = m, b.Started
		}
	}
	return booting, true
}

// owner tells whether a node has an address, and whether mac is one of that
// node's.
func (a *addresses) owner(addr netip.Addr, mac pools.MAC) (owned, own bool) {
	if n, ok := a.live.Farm().NodeAt(addr); ok && len(n.MACs) > 0 {
		return true, slices.Contains(n.MACs, mac)
	}
	has, leased := a.store.Leases.MACAt(addr)
	return leased, leased && has == mac
}

// exchange is told of every DHCP packet.
func (s *Server) exchange(e dhcp.Exchange) {
	s.metrics.exchange(e)
	if e.Type != "DISCOVER" {
		return
	}
	if e.Netboot && e.Plan != nil {
		s.discovered(e)
	}
	// What was dropped unread has no Plan, whoever sent it.
	if e.Unknown() && (e.Plan != nil || e.Decision == dhcp.NotOurs) {
		s.Store.Unknowns.Seen(unknown(&e))
	}
}

// discovered begins the timeline of a machine whose firmware asks, also when there
// is no address for it: that is what its operator looks for.
func (s *Server) discovered(e dhcp.Exchange) {
	offer := boots.Event{Step: boots.StepOffer}
	switch {
	case e.Reply != "":
		if e.Address.IsValid() {
			offer.Detail = e.Address.String()
		}
	case e.Decision == dhcp.NoAddress:
		offer.Error = "no address for it is free, or its lease could not be stored"
	default: // dropped, or not for us to answer
		return
	}
	s.Store.Boots.Discover(e.Plan, e.Time)
	s.step(e.MAC, offer)
	if e.Reply != "" {
		s.Store.NextBoots.Discover(e.Plan.Node)
		s.http.Booting(e.MAC)
	}
}

// inbox are the machines that asked and that no node declares now. One that a
// node declares can be among those that asked: it was made known since, or it
// is to be ignored, or it is plugged in where it does not belong.
type inbox struct {
	live     *config.Live
	unknowns *state.Unknowns
}

func (b inbox) List() []pools.Unknown {
	declared := map[pools.MAC]bool{}
	for _, n := range b.live.Farm().Nodes() {
		for _, m := range n.MACs {
			declared[m] = true
		}
	}
	return slices.DeleteFunc(b.unknowns.List(), func(u pools.Unknown) bool { return declared[u.MAC] })
}

func (b inbox) Forget(mac pools.MAC) bool { return b.unknowns.Forget(mac) }

// unknown is what a DISCOVER tells of a machine that no node declares.
func unknown(e *dhcp.Exchange) pools.Unknown {
	u := pools.Unknown{
		MAC: e.MAC, First: e.Time, Last: e.Time, Count: 1, Firmware: e.Firmware, Class: e.Class,
		Relay: e.Giaddr, Circuit: e.Circuit, Remote: e.Remote,
	}
	if e.Plan != nil {
		u.Pool, u.Address = e.Plan.Pool, e.Address
	}
	return u
}

// nodeReady is told when a node that joined is Ready.
func (s *Server) nodeReady(p *pools.Plan, _ time.Time) {
	s.step(p.MAC, boots.Event{Step: boots.StepReady})
}

// step notes what the server itself saw of a boot.
func (s *Server) step(mac pools.MAC, e boots.Event) {
	if err := s.Store.Boots.Step(mac, "", e); err != nil {
		s.log.Debug("step of no boot", "mac", mac, "step", e.Step, "err", err)
	}
}

// readiness finds what is missing.
type readiness struct {
	live     *config.Live
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
		if seen[p.Image] || p.Image == "" { // a pool to be ignored needs none
			continue
		}
		seen[p.Image] = true
		if _, err := r.images.Lookup(p.Image); err != nil {
			out = append(out, web.Problem{Part: "image " + p.Image, Problem: fmt.Sprintf("%v: build it with drover image build --name %s", err, p.Image)})
		}
	}
	for _, f := range []pools.Firmware{pools.BIOS, pools.UEFIx64} {
		if _, err := os.Stat(filepath.Join(r.loaders, f.Loader())); err != nil {
			out = append(out, web.Problem{Part: "loader for " + string(f), Problem: fmt.Sprintf("%v: put it there with drover loaders install", err)})
		}
	}
	return append(out, r.rules()...)
}

// rules are the loaders that rules of tags name and that are not there.
func (r *readiness) rules() (out []web.Problem) {
	for name, tag := range r.live.Farm().Config.Tags {
		for _, rule := range tag.Loaders.Items {
			if rule.Server.IsValid() || strings.Contains(rule.Loader, "://") {
				continue // it is somewhere else
			}
			if err := r.there(rule.Loader); err != nil {
				out = append(out, web.Problem{Part: "loader of tag " + name, Problem: err.Error()})
			}
		}
		if fdt := tag.UBoot.FDT; fdt != "" {
			if _, err := os.Stat(filepath.Join(r.loaders, fdt)); err != nil {
				out = append(out, web.Problem{Part: "device tree of tag " + name, Problem: err.Error()})
			}
		}
	}
	return out
}
