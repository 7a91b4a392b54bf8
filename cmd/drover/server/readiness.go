package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover/imagebuild"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/printable"
	"drover/web/api"
)

// Time limits of the parts of /readyz, which must answer even if a cluster or a disk
// does not.
const (
	filesWait   = time.Second     // for images and loaders
	clusterWait = 3 * time.Second // for clusters; more than the limit of their own check
)

// readiness finds the parts that are not ready.
type readiness struct {
	live     *config.Live
	images   *imagebuild.Dir
	loaders  string
	clusters func(context.Context) map[string]error // by name; nil: nodes can join
	chassis  func() map[string]string               // the errors, by name
	disks    *diskMonitor
	state    condition
	proc     fs.FS // the file system /proc

	interfaces func() map[string]error // those that are not served, and why; nil: all are

	lastFiles    latest[[]api.Problem]
	lastClusters latest[map[string]error]
}

// problems returns every part that is not ready, sorted by part. It does not wait for
// clusters and disks that hang.
func (r *readiness) problems() []api.Problem {
	out := append(r.disks.problems(), damageProblems(r.state)...)
	files, ok := r.lastFiles.get(r.local, filesWait)
	if !ok {
		files = []api.Problem{{Part: "files", Problem: "the directories of images and loaders have not answered yet"}}
	}
	out = append(append(out, files...), r.clusterProblems()...)
	for name, text := range r.chassis() {
		out = append(out, api.Problem{Part: "chassis " + name, Problem: printable.Line(text, maxProblem), Brief: "it cannot be read", Warning: true})
	}
	out = append(out, r.interfaceProblems()...)
	if r.live.NeedsRestart() {
		out = append(out, api.Problem{Part: "config", Problem: "server: changed, which takes a restart", Brief: "it takes a restart", Warning: true})
	}
	slices.SortFunc(out, func(a, b api.Problem) int { return cmp.Compare(a.Part, b.Part) })
	return out
}

// interfaceProblems returns the interfaces on which DHCP is not served. They are warnings
// while it is served on another one.
func (r *readiness) interfaceProblems() (out []api.Problem) {
	if r.interfaces == nil {
		return nil
	}
	missing := r.interfaces()
	isServed := func(name string) bool { return missing[name] == nil }
	served := slices.ContainsFunc(r.live.Farm().Config.Server.Interfaces, isServed)
	for name, err := range missing {
		out = append(out, api.Problem{
			Part: "interface " + name, Problem: printable.Line(err.Error(), maxProblem), Brief: "DHCP is not served there", Warning: served,
		})
	}
	return out
}

// maxProblem limits a text that comes from elsewhere, in bytes.
const maxProblem = 1000

// clusterProblems returns the clusters that nodes cannot join. They are warnings while
// nodes can join another one: one tenant must not make the whole server unready.
func (r *readiness) clusterProblems() (out []api.Problem) {
	check := func() map[string]error { return r.clusters(context.Background()) }
	errs, ok := r.lastClusters.get(check, clusterWait)
	clusters := r.live.Farm().Config.Clusters
	for _, c := range clusters {
		err, checked := errs[c.Name]
		if !ok || !checked {
			err = errors.New("it is being checked for the first time")
		}
		if err != nil {
			out = append(out, api.Problem{Part: "cluster " + c.Name, Problem: printable.Line(err.Error(), maxProblem), Brief: "nodes cannot join it"})
		}
	}
	for i := range out {
		out[i].Warning = len(out) < len(clusters)
	}
	return out
}

// missing is the brief problem of a file.
const missing = "it is missing"

// local returns the missing images, loaders and device trees of this host, and what its
// kernel has too little of.
func (r *readiness) local() (out []api.Problem) {
	seen := map[string]bool{}
	platforms := map[string]bool{}
	for _, p := range r.live.Farm().Config.Pools {
		if seen[p.Image] || p.Image == "" { // an ignored pool needs none
			continue
		}
		seen[p.Image] = true
		image, err := r.images.Lookup(p.Image)
		if err != nil {
			out = append(out, api.Problem{
				Part: "image " + p.Image, Problem: fmt.Sprintf("%v: build it with drover image build --name %s", err, p.Image), Brief: missing,
			})
		}
		platforms[image.Platform] = true
	}
	out = append(append(out, r.firmwareLoaders(platforms)...), r.tagFiles()...)
	return append(out, neighborProblems(r.live.Farm(), r.proc)...)
}

// firmwareLoaders returns the missing loaders of machines that boot images of these
// platforms. A machine whose image is missing counts as x86-64. On arm64 a missing
// loader is a warning: U-Boot needs none.
func (r *readiness) firmwareLoaders(platforms map[string]bool) (out []api.Problem) {
	need := func(f pools.Firmware, warning bool) {
		if _, err := os.Stat(filepath.Join(r.loaders, f.Loader())); err != nil {
			out = append(out, api.Problem{
				Part: "loader for " + string(f), Problem: fmt.Sprintf("%v: put it there with drover loaders install", err), Brief: missing, Warning: warning,
			})
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

// tagFiles returns the missing loaders and device trees that tags name.
func (r *readiness) tagFiles() (out []api.Problem) {
	for name, tag := range r.live.Farm().Config.Tags {
		for _, rule := range tag.Loaders.Items {
			if rule.Server.IsValid() || strings.Contains(rule.Loader, "://") {
				continue // on another server
			}
			if err := r.checkLoader(rule.Loader); err != nil {
				out = append(out, api.Problem{Part: "loader of tag " + name, Problem: err.Error(), Brief: missing})
			}
		}
		if fdt := tag.UBoot.FDT; fdt != "" {
			if _, err := os.Stat(filepath.Join(r.loaders, fdt)); err != nil {
				out = append(out, api.Problem{Part: "device tree of tag " + name, Problem: err.Error(), Brief: missing})
			}
		}
	}
	return out
}

// checkLoader returns an error if a loader is missing, or if it is shim and its GRUB is
// missing. GRUB may be beside shim or in the directory of loaders.
func (r *readiness) checkLoader(loader string) error {
	if path.Base(loader) == pools.UBootArm64.Loader() {
		return nil // drover makes it for each request
	}
	if _, err := os.Stat(filepath.Join(r.loaders, loader)); err != nil {
		return err
	}
	second := map[string]string{"shimx64.efi": "grubx64.efi", "shimaa64.efi": "grubaa64.efi"}[path.Base(loader)]
	if second == "" {
		return nil
	}
	_, err := os.Stat(filepath.Join(r.loaders, path.Dir(loader), second))
	if err != nil {
		_, err = os.Stat(filepath.Join(r.loaders, second))
	}
	if err != nil {
		return fmt.Errorf("%s has nothing to load: %w: put it there with drover loaders install", loader, err)
	}
	return nil
}

// logProblems logs at start the parts that are not ready. /readyz reports them for as
// long as they last.
func (s *Server) logProblems(r *readiness) {
	for _, p := range r.local() {
		s.log.Warn("not ready", "what", p.Part, "problem", p.Problem)
	}
}
