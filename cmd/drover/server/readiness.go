package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"drover/imagebuild"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/kube"
	"drover/web/api"
)

// readiness finds the parts that are not ready: images, loaders, clusters.
type readiness struct {
	live     *config.Live
	images   *imagebuild.Dir
	loaders  string
	clusters *kube.Clusters
}

// problems returns every part that is not ready, sorted by part.
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

// local returns the missing images, loaders and device trees of this host.
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
			out = append(out, api.Problem{Part: "image " + p.Image, Problem: fmt.Sprintf("%v: build it with drover image build --name %s", err, p.Image)})
		}
		platforms[image.Platform] = true
	}
	return append(append(out, r.firmwareLoaders(platforms)...), r.tagFiles()...)
}

// firmwareLoaders returns the missing loaders of machines that boot images of these
// platforms. A machine whose image is missing counts as x86-64. On arm64 a missing
// loader is a warning: U-Boot needs none.
func (r *readiness) firmwareLoaders(platforms map[string]bool) (out []api.Problem) {
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

// tagFiles returns the missing loaders and device trees that tags name.
func (r *readiness) tagFiles() (out []api.Problem) {
	for name, tag := range r.live.Farm().Config.Tags {
		for _, rule := range tag.Loaders.Items {
			if rule.Server.IsValid() || strings.Contains(rule.Loader, "://") {
				continue // on another server
			}
			if err := r.checkLoader(rule.Loader); err != nil {
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

// problems returns the problems for /readyz. An unreachable chassis is a warning:
// known machines boot without it.
func (s *Server) problems(ctx context.Context, r *readiness) []api.Problem {
	out := r.problems(ctx)
	chassis := s.Hardware.Warnings()
	for _, name := range slices.Sorted(maps.Keys(chassis)) {
		out = append(out, api.Problem{Part: "chassis " + name, Problem: chassis[name], Warning: true})
	}
	return out
}

// logProblems logs at start the parts that are not ready. /readyz reports them for as
// long as they last.
func (s *Server) logProblems(r *readiness) {
	for _, p := range r.local() {
		s.log.Warn("not ready", "what", p.Part, "problem", p.Problem)
	}
}
