package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/atomicfile"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/pools/kube"
)

// What keeps the Nodes in the tenants' clusters as the farm says.

// resumeAge is how long after its token a node is still waited for when the
// server starts: longer than any boot takes, shorter than anybody waits.
const resumeAge = time.Hour

// tendNodes makes the tenants' clusters, and has their Nodes follow the farm.
func (s *Server) tendNodes(dir string) error {
	key, err := nodeKey(filepath.Join(dir, "nodes.key"))
	if err != nil {
		return err
	}
	farm := s.Live.Farm()
	s.clusters = &kube.Clusters{
		Log: s.part("kube"), OnReady: s.nodeReady, OnReconcile: s.metrics.reconciled, Machines: machines{s}, Key: key,
		Admin: farm.Path(farm.Config.Server.AdminKubeconfig),
	}
	s.metrics.watchMoves(s.clusters.Moves)
	s.attend(s.clusters, filepath.Join(dir, "tokens.json"))
	s.clusters.Set(s.Live.Farm().Clusters())
	s.clusters.Refresh()
	for _, b := range unready(s.Store.Boots.List(), time.Now()) {
		if p := s.Live.Resolve(pools.Query{MAC: b.mac}); p != nil && p.Cluster != "" {
			if err := s.clusters.Resume(p, b.id); err != nil {
				s.log.Debug("node is not followed to Ready", "node", p.Node, "err", err)
			}
		}
	}
	return nil
}

// nodeKey reads the key that proves which labels and taints of a Node drover has
// set and which tokens it has minted, or makes one. Who has it and may make
// bootstrap tokens in a cluster can have drover approve any node. Without it drover
// leaves more on a Node than it has to, and boots under way ask for another token.
func nodeKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = []byte(rand.Text() + rand.Text())
		err = atomicfile.Write(path, key, 0o600)
	}
	if err == nil && len(key) < 32 {
		err = fmt.Errorf("%s: %d bytes, want 32 or more; remove the file, and drover makes another", path, len(key))
	}
	return key, err
}

// kernelBoot is a boot that got its token and is not Ready.
type kernelBoot struct {
	mac pools.MAC
	id  string
}

// unready picks the boots to follow until they are Ready; all has the newest
// first. A machine's newest token counts: a DISCOVER after it may be anybody's.
func unready(all []boots.Record, now time.Time) (waiting []kernelBoot) {
	seen := map[pools.MAC]bool{}
	for _, b := range all {
		token, ok := b.Reached(boots.StepToken)
		if !ok || seen[b.MAC] {
			continue
		}
		seen[b.MAC] = true
		if _, ready := b.Reached(boots.StepReady); !ready && token.Detail != "" && now.Sub(token.Time) < resumeAge {
			waiting = append(waiting, kernelBoot{b.MAC, token.Detail})
		}
	}
	return waiting
}

// machines answers which machine a node is.
type machines struct{ *Server }

func (m machines) Named(node string) *pools.Plan         { return m.planOf(node) }
func (m machines) CurrentPlanOf(node string) *pools.Plan { return m.currentPlanOf(node) }

// planOf returns the Plan of the node of that name.
func (s *Server) planOf(node string) *pools.Plan {
	mac, ok := s.macOf(node)
	if !ok {
		return nil
	}
	if p := s.Live.Resolve(pools.Query{MAC: mac}); p != nil && p.Node == node {
		return p
	}
	return nil
}

// currentPlanOf returns the Plan of a machine that was unknown hardware, and as such the
// node of that name, and has a name of its own now.
func (s *Server) currentPlanOf(node string) *pools.Plan {
	if _, declared := s.Live.Farm().Node(node); declared {
		return nil
	}
	mac, ok := s.macOf(node)
	if !ok {
		return nil
	}
	return s.Live.Resolve(pools.Query{MAC: mac})
}

// macOf returns a MAC of the node of that name: one that declares it, or the one
// that its switch port last led to, or the one in the name of unknown hardware.
func (s *Server) macOf(node string) (pools.MAC, bool) {
	n, declared := s.Live.Farm().Node(node)
	switch {
	case !declared:
		mac, err := pools.ParseMAC(strings.TrimPrefix(node, "node-"))
		return mac, err == nil
	case len(n.MACs) > 0:
		return n.MACs[0], true
	}
	leases := s.Store.Leases.List()
	i := slices.IndexFunc(leases, func(l pools.Lease) bool { return l.Node == node })
	if i < 0 {
		return pools.MAC{}, false
	}
	return leases[i].MAC, true
}

// changes is the farm as the REST API changes it: what it says of labels and
// taints is then so in the clusters too.
type changes struct {
	*config.Live
	changed func()
}

func (c changes) done(err error) error {
	if err == nil {
		c.changed()
	}
	return err
}

func (c changes) AddNode(n pools.PoolNode) error { return c.done(c.Live.AddNode(n)) }
func (c changes) ChangeNodes(all []pools.NodeChange) error {
	return c.done(c.Live.ChangeNodes(all))
}
func (c changes) RemoveNode(name string) error { return c.done(c.Live.RemoveNode(name)) }
func (c changes) UpdateNode(name string, edit func(pools.PoolNode) (pools.PoolNode, error)) error {
	return c.done(c.Live.UpdateNode(name, edit))
}
