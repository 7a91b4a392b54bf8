package server

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover/dhcp"
	"drover/httpboot/script"
	"drover/imagebuild"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/pools/kube"
	"drover/pools/machines"
	"drover/pools/state"
	"drover/web/api"
)

// imageDir finds images on disk.
type imageDir struct{ dir *imagebuild.Dir }

func (d imageDir) Image(ref string) (script.Image, error) {
	i, err := d.dir.Lookup(ref)
	if err != nil {
		return script.Image{}, err
	}
	file := func(name string) script.FileInfo {
		return script.FileInfo{Name: name, Size: i.Files[name].Size, SHA256: i.Files[name].SHA256}
	}
	return script.Image{
		Name: i.Name, Generation: i.ID, Dir: i.Path,
		Kernel: file(imagebuild.KernelFile), Initrd: file(imagebuild.InitrdFile), Squashfs: file(imagebuild.SquashfsFile),
	}, nil
}

// newDirectory returns the directory of a farm and its state.
func newDirectory(live *config.Live, store *state.Store) *machines.Directory {
	return &machines.Directory{Farm: live, Leases: store.Leases, Boots: store.Boots, NextBoots: store.NextBoots, Unknowns: store.Unknowns}
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
		s.scripts.Forget(e.MAC)
	}
}

// unknowns are the machines that no node declares, as the page shows and forgets
// them.
type unknowns struct {
	*machines.Directory
	*state.Unknowns
}

func (u unknowns) List() []pools.Unknown { return u.Unknown() }

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
func (r *readiness) problems(ctx context.Context) []api.Problem {
	out := r.local()
	for name, err := range r.clusters.Check(ctx) {
		if err != nil {
			out = append(out, api.Problem{Part: "cluster " + name, Problem: err.Error()})
		}
	}
	slices.SortFunc(out, func(a, b api.Problem) int { return cmp.Compare(a.Part, b.Part) })
	return out
}

// local lists what is missing on this host.
func (r *readiness) local() (out []api.Problem) {
	seen := map[string]bool{}
	platforms := map[string]bool{}
	for _, p := range r.live.Farm().Config.Pools {
		if seen[p.Image] || p.Image == "" { // a pool to be ignored needs none
			continue
		}
		seen[p.Image] = true
		image, err := r.images.Lookup(p.Image)
		if err != nil {
			out = append(out, api.Problem{Part: "image " + p.Image, Problem: fmt.Sprintf("%v: build it with drover image build --name %s", err, p.Image)})
		}
		platforms[image.Platform] = true
	}
	return append(append(out, r.firmware(platforms)...), r.rules()...)
}

// firmware lists the missing loaders of the machines that boot images of these
// platforms. A machine whose image is not known yet counts as x86-64. On arm64 a
// missing one is a warning: U-Boot needs none.
func (r *readiness) firmware(platforms map[string]bool) (out []api.Problem) {
	need := func(f pools.Firmware, warning bool) {
		if _, err := os.Stat(filepath.Join(r.loaders, f.Loader())); err != nil {
			out = append(out, api.Problem{Part: "loader for " + string(f), Problem: fmt.Sprintf("%v: put it there with drover loaders install", err), Warning: warning})
		}
	}
	if platforms["linux/amd64"] || platforms[""] {
		need(pools.BIOS, false)
		need(pools.UEFIx64, false)
	}
	if platforms["linux/arm64"] {
		need(pools.UEFIarm64, true)
	}
	return out
}

// rules are the loaders that rules of tags name and that are not there.
func (r *readiness) rules() (out []api.Problem) {
	for name, tag := range r.live.Farm().Config.Tags {
		for _, rule := range tag.Loaders.Items {
			if rule.Server.IsValid() || strings.Contains(rule.Loader, "://") {
				continue // it is somewhere else
			}
			if err := r.there(rule.Loader); err != nil {
				out = append(out, api.Problem{Part: "loader of tag " + name, Problem: err.Error()})
			}
		}
		if fdt := tag.UBoot.FDT; fdt != "" {
			if _, err := os.Stat(filepath.Join(r.loaders, fdt)); err != nil {
				out = append(out, api.Problem{Part: "device tree of tag " + name, Problem: err.Error()})
			}
		}
	}
	return out
}
