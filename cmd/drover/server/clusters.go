package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"drover/pools"
	"drover/pools/atomicfile"
	"drover/pools/boots"
	"drover/pools/config"
	"drover/pools/kube"
)

// startClusters makes the tenants' clusters, and starts the loops that keep their
// Nodes as the farm says.
func (s *Server) startClusters(dir string) error {
	key, err := nodeKey(filepath.Join(dir, "nodes.key"))
	if err != nil {
		return err
	}
	farm := s.Live.Farm()
	s.clusters = &kube.Clusters{
		Log: s.part("kube"), OnReady: s.nodeReady, OnReconcile: s.metrics.reconciled, Machines: s.Machines, Key: key,
		Admin: farm.Path(farm.Config.Server.AdminKubeconfig), Tokens: tokenFile(filepath.Join(dir, "tokens.json")),
		StartLoops: true, OnRequest: s.certificate,
		AddressOf: func(mac pools.MAC) (netip.Addr, bool) {
			l, ok := s.Store.Leases.Of(mac)
			return l.Address, ok
		},
	}
	s.metrics.watchMoves(s.clusters.Moves)
	s.clusters.Set(s.Live.Farm().Clusters())
	s.clusters.Refresh()
	for _, b := range unready(s.Store.Boots.List(), time.Now()) {
		if p := s.Machines.Of(b.mac).Plan; p != nil && p.Cluster != "" {
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
		if _, ready := b.Reached(boots.StepReady); !ready && token.Detail != "" && now.Sub(token.Time) < boots.Longest {
			waiting = append(waiting, kernelBoot{b.MAC, token.Detail})
		}
	}
	return waiting
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
