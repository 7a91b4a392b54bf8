// Package readiness checks the parts that a server needs to boot machines: the disks of
// its directories, images and loaders, clusters, chassis, interfaces, and the kernel's
// neighbor table. [Checks.Problems] has the answer of /readyz; it never waits for a part
// that hangs. The package does not know how the parts work: it asks them.
package readiness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
	"drover/server/peers"
	"drover/web/api"
)

// Condition is the condition of the state; state.Store implements it.
type Condition interface {
	Health() error // can wait for a disk that hangs
	Damage() int
}

// Time limits of the parts of /readyz, which must answer even if a cluster or a disk
// does not.
const (
	filesWait   = time.Second     // for images and loaders
	clusterWait = 3 * time.Second // for clusters; more than the limit of their own check
)

// Checks finds the parts that are not ready.
type Checks struct {
	Live     *config.Live
	Images   Images
	Loaders  string                                 // the directory of boot loaders
	Clusters func(context.Context) map[string]error // by name; nil: nodes can join
	Chassis  func() map[string]string               // the errors, by name
	Disks    *Disks
	State    Condition
	Proc     fs.FS // the file system /proc

	Interfaces func() map[string]error  // those that are not served, and why; nil: all are
	Parts      []string                 // all that serve DHCP or DHCPv6, by the names of Interfaces
	Objects    func() map[string]string // problems of the admin cluster's objects, by part; nil: none

	Peers func() []peers.Status // the other servers of the farm; nil: there are none

	Expiries func() map[string]time.Time // when credentials for clusters end, by cluster; nil: none do
	Renewals func() map[string]error     // those that drover renews, with the error of the last try

	lastFiles    latest[[]api.Problem]
	lastFacts    latest[Facts]
	lastClusters latest[map[string]error]
}

// Problems returns every part that is not ready, sorted by part. It does not wait for
// clusters and disks that hang.
func (c *Checks) Problems() []api.Problem {
	out := append(c.Disks.problems(), damage(c.State)...)
	files, ok := c.lastFiles.get(c.local, filesWait)
	if !ok {
		files = []api.Problem{{Part: "files", Problem: "the directories of images and loaders have not answered yet"}}
	}
	out = append(append(out, files...), c.clusterProblems()...)
	out = append(out, c.expiryProblems(time.Now())...)
	for name, text := range c.Chassis() {
		out = append(out, api.Problem{Part: "chassis " + name, Problem: printable.Line(text, maxProblem), Brief: "it cannot be read", Warning: true})
	}
	out = append(out, append(c.interfaceProblems(), c.objectProblems()...)...)
	out = append(append(out, c.configProblems()...), c.peerProblems()...)
	slices.SortFunc(out, func(a, b api.Problem) int { return cmp.Compare(a.Part, b.Part) })
	return out
}

// peerProblems returns the other servers where a boot cannot go on.
func (c *Checks) peerProblems() (out []api.Problem) {
	if c.Peers == nil {
		return nil
	}
	for _, s := range c.Peers() {
		if s.Problem != "" {
			out = append(out, api.Problem{Part: "server " + s.Server, Problem: printable.Line(s.Problem, maxProblem), Brief: "it cannot stand in for this one", Warning: true})
		}
	}
	return out
}

// configProblems returns what is wrong with the config file. The server goes on with the
// config in force, so they are warnings.
func (c *Checks) configProblems() (out []api.Problem) {
	add := func(problem, brief string) {
		out = append(out, api.Problem{Part: "config", Problem: printable.Line(problem, maxProblem), Brief: brief, Warning: true})
	}
	status := c.Live.Status()
	if status.Refused != nil {
		add("the file is refused, and the last good one is in force: "+status.Refused.Error(), "the file is refused")
	}
	if held := status.Held; held != nil {
		brief := "file and farm differ"
		if held.Why == pools.HeldByBrake {
			brief = "a change of the file waits"
		}
		add(held.Text(), brief)
	}
	if status.Unkept != nil {
		add(status.Unkept.Error(), "the next start has no last good copy of it")
	}
	if waiting := c.Live.Farm().Waiting(); len(waiting) > 0 {
		add(fmt.Sprintf("%d nodes of the API are left out, the first %q: pool %q, its subnet or a tag is neither in the file nor an object in force", len(waiting), waiting[0].Name, waiting[0].Pool), "nodes of the API are left out")
	}
	if c.Live.NeedsRestart() {
		add("restart pending: server: changed, or the first subnet of IPv4 or IPv6 came", "restart pending")
	}
	return out
}

// objectProblems returns what is wrong with the objects of the admin cluster. They are
// warnings: the last good ones are in force.
func (c *Checks) objectProblems() (out []api.Problem) {
	if c.Objects == nil {
		return nil
	}
	for part, text := range c.Objects() {
		out = append(out, api.Problem{Part: part, Problem: printable.Line(text, maxProblem), Brief: "it is not in force as it is", Warning: true})
	}
	return out
}

// interfaceProblems returns the interfaces on which DHCP is not served. They are warnings
// while it is served on another one.
func (c *Checks) interfaceProblems() (out []api.Problem) {
	if c.Interfaces == nil {
		return nil
	}
	missing := c.Interfaces()
	isServed := func(name string) bool { return missing[name] == nil }
	served := slices.ContainsFunc(c.Parts, isServed)
	for name, err := range missing {
		out = append(out, api.Problem{
			Part: "interface " + name, Problem: printable.Line(err.Error(), maxProblem), Brief: "DHCP is not served there", Warning: served,
		})
	}
	return out
}

// ClusterErrors returns why nodes cannot join the clusters of the config, by name; nil where
// they can. It leaves out clusters that have not been checked yet.
func (c *Checks) ClusterErrors() map[string]error {
	errs, _ := c.lastClusters.get(func() map[string]error { return c.Clusters(context.Background()) }, clusterWait)
	return errs
}

// maxProblem limits a text that comes from elsewhere, in bytes.
const maxProblem = 1000

// clusterProblems returns the clusters that nodes cannot join. They are warnings while
// nodes can join another one: one tenant must not make the whole server unready.
func (c *Checks) clusterProblems() (out []api.Problem) {
	errs := c.ClusterErrors()
	clusters := c.Live.Farm().Config.Clusters
	for _, cluster := range clusters {
		err, checked := errs[cluster.Name]
		if !checked {
			err = errors.New("it is being checked for the first time")
		}
		if err != nil {
			text := strings.TrimPrefix(err.Error(), fmt.Sprintf("cluster %q: ", cluster.Name)) // the part has the name
			out = append(out, api.Problem{Part: "cluster " + cluster.Name, Problem: printable.Line(text, maxProblem), Brief: "nodes cannot join it"})
		}
	}
	for i := range out {
		out[i].Warning = len(out) < len(clusters)
	}
	return out
}

// renewBefore is how long before their end credentials are a problem.
const renewBefore = 14 * 24 * time.Hour

// expiryProblems returns the clusters for which drover's credentials end soon, or have ended,
// and those whose credentials drover should renew and cannot.
func (c *Checks) expiryProblems(now time.Time) (out []api.Problem) {
	facts := c.Facts()
	for name, end := range facts.Expiries {
		failed, renews := facts.Renewals[name]
		if failed != nil {
			text := fmt.Sprintf("drover's credentials end at %s, and drover cannot renew them: %v; drover cluster prepare %s --admin FILE --write FILE gives it the right, and makes new ones", end.UTC().Format(time.RFC3339), failed, name)
			out = append(out, api.Problem{Part: "cluster " + name, Problem: printable.Line(text, maxProblem), Brief: "its credentials are not renewed", Warning: true})
		}
		if renews || end.Sub(now) > renewBefore {
			continue
		}
		verb, brief := "end", "its credentials end soon"
		if !now.Before(end) {
			verb, brief = "ended", "its credentials have ended"
		}
		text := fmt.Sprintf("drover's credentials %s at %s: drover cluster prepare %s --admin FILE --write FILE makes new ones, unless something else renews the kubeconfig", verb, end.UTC().Format(time.RFC3339), name)
		out = append(out, api.Problem{Part: "cluster " + name, Problem: text, Brief: brief, Warning: true})
	}
	return out
}

// missing is the brief problem of a file.
const missing = "it is missing"

// local returns the missing images, loaders and device trees of this host, and what its
// kernel has too little of.
func (c *Checks) local() (out []api.Problem) {
	seen := map[string]bool{}
	platforms := map[string]bool{}
	for _, p := range c.Live.Farm().Config.Pools {
		if seen[p.Image] || p.Image == "" { // an ignored pool needs none
			continue
		}
		seen[p.Image] = true
		image, err := c.Images.Lookup(p.Image)
		if err != nil {
			problem := err.Error()
			if name, channel, _ := pools.SplitImage(p.Image); channel == "" { // the error of a channel has its remedy
				problem += ": build it with drover image build --name " + name
			}
			out = append(out, api.Problem{Part: "image " + p.Image, Problem: problem, Brief: missing})
		}
		platforms[image.Platform] = true
	}
	out = append(append(out, c.firmwareLoaders(platforms)...), c.tagFiles()...)
	return append(out, neighborProblems(c.Live.Farm(), c.Proc)...)
}

// firmwareLoaders returns the missing loaders of machines that boot images of these
// platforms. A machine whose image is missing counts as x86-64. On arm64 a missing
// loader is a warning: U-Boot needs none.
func (c *Checks) firmwareLoaders(platforms map[string]bool) (out []api.Problem) {
	for _, f := range resolve.NeedLoaders(platforms) {
		if _, err := os.Stat(filepath.Join(c.Loaders, f.Loader())); err != nil {
			out = append(out, api.Problem{
				Part: "loader for " + string(f), Problem: fmt.Sprintf("%v: put it there with drover loaders install", err), Brief: missing, Warning: f == pools.UEFIarm64,
			})
		}
	}
	return out
}

// tagFiles returns the missing loaders and device trees that tags name.
func (c *Checks) tagFiles() (out []api.Problem) {
	for name, tag := range c.Live.Farm().Config.Tags {
		for _, rule := range tag.Loaders.Items {
			if rule.Server.IsValid() || strings.Contains(rule.Loader, "://") {
				continue // on another server
			}
			if err := c.checkLoader(rule.Loader); err != nil {
				out = append(out, api.Problem{Part: "loader of tag " + name, Problem: err.Error(), Brief: missing})
			}
		}
		if fdt := tag.UBoot.FDT; fdt != "" {
			if _, err := os.Stat(filepath.Join(c.Loaders, fdt)); err != nil {
				out = append(out, api.Problem{Part: "device tree of tag " + name, Problem: err.Error(), Brief: missing})
			}
		}
	}
	return out
}

// checkLoader returns an error if a loader is missing, or if it is shim and its GRUB is
// missing. GRUB may be beside shim or in the directory of loaders.
func (c *Checks) checkLoader(loader string) error {
	if path.Base(loader) == pools.UBootArm64.Loader() {
		return nil // drover makes it for each request
	}
	if _, err := os.Stat(filepath.Join(c.Loaders, loader)); err != nil {
		return err
	}
	second := map[string]string{"shimx64.efi": "grubx64.efi", "shimaa64.efi": "grubaa64.efi"}[path.Base(loader)]
	if second == "" {
		return nil
	}
	_, err := os.Stat(filepath.Join(c.Loaders, path.Dir(loader), second))
	if err != nil {
		_, err = os.Stat(filepath.Join(c.Loaders, second))
	}
	if err != nil {
		return fmt.Errorf("%s has nothing to load: %w: put it there with drover loaders install", loader, err)
	}
	return nil
}

// Log logs what this host lacks. /readyz reports it for as long as that lasts.
func (c *Checks) Log(log *slog.Logger) {
	for _, p := range c.local() {
		log.Warn("not ready", "what", p.Part, "problem", p.Problem)
	}
}

// damage returns the damage of the state that was found at the start.
func damage(state Condition) (out []api.Problem) {
	if n := state.Damage(); n > 0 {
		out = append(out, api.Problem{
			Part: "state", Brief: "it was damaged", Warning: true,
			Problem: fmt.Sprintf("%d parts were damaged and are left out; the log of the start names them, *.damaged in the state directory has the files", n),
		})
	}
	return out
}
