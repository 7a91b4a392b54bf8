package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"drover/internal/atomicfile"
	"drover/kube"
	"drover/pools"
	"drover/pools/boots"
)

// startClusters makes the clients of the tenants' clusters and starts their loops,
// which keep the labels and taints of Nodes as the farm declares them. It resumes the
// joins that were in progress when the last server ended.
func (s *Server) startClusters(dir string) error {
	key, err := nodeKey(filepath.Join(dir, nodesKey))
	if err != nil {
		return err
	}
	s.Store.Boots.EventSecret = key
	if err := s.newPeers(dir, key); err != nil {
		return err
	}
	farm := s.Live.Farm()
	s.clusters = &kube.Clusters{
		Log: s.part("kube"), OnReady: s.nodeReady, OnReconcile: s.metrics.Reconciled, OnRefused: s.metrics.AnswerRefused, Machines: s.Machines, Key: key,
		Admin: farm.Path(farm.Config.Server.AdminKubeconfig), Tokens: newTokenFile(filepath.Join(dir, tokensFile)),
		StartLoops: true, OnRequest: s.certificate,
		Addresses: s.Machines.Addresses, State: dir,
	}
	s.metrics.WatchMoves(s.clusters.Moves)
	s.clusters.Set(s.Live.Farm().Clusters())
	s.clusters.Refresh()
	for _, b := range joining(s.boots().List(), time.Now()) {
		if p := s.Machines.Of(b.mac).Plan; p != nil && p.Cluster != "" {
			if err := s.clusters.Resume(p, b.id); err != nil {
				s.log.Debug("node is not followed to Ready", "node", p.Node, "err", err)
			}
		}
	}
	return nil
}

// nodeKey returns the key that proves which labels and taints of a Node drover has
// set, and which tokens it has minted. It makes the file if there is none. Anyone
// with the key and the right to make bootstrap tokens in a cluster can make drover
// approve any node. After a loss of the key drover leaves labels and taints on a Node
// that it could remove, and boots in progress need another token.
func nodeKey(path string) ([]byte, error) {
	key, _, err := atomicfile.ReadOrMakeKey(path, checkNodeKey, func() ([]byte, error) { return []byte(rand.Text() + rand.Text()), nil })
	return key, err
}

// NodeKey returns the key in the state directory of a server that has run.
func NodeKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, nodesKey)
	key, _, err := atomicfile.ReadOrMakeKey(path, nil, func() ([]byte, error) {
		return nil, fmt.Errorf("%s: no such file: drover serve makes it at its first start", path)
	})
	if err != nil {
		return nil, err
	}
	if err := checkNodeKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func checkNodeKey(key []byte) error {
	if len(key) < 32 {
		return fmt.Errorf("%d bytes, want 32 or more; remove the file, and drover makes another", len(key))
	}
	return nil
}

// joiningBoot is a boot that got its token and whose Node is not Ready.
type joiningBoot struct {
	mac pools.MAC
	id  string
}

// joining returns the boots to follow until their Node is Ready. The argument all has
// the newest boot first. A machine's newest token counts, not its newest boot: any
// host can send a DISCOVER with its MAC.
func joining(all []boots.Record, now time.Time) (waiting []joiningBoot) {
	seen := map[pools.MAC]bool{}
	for _, b := range all {
		token, ok := b.Reached(boots.StepToken)
		if !ok || seen[b.MAC] || b.Retired {
			continue
		}
		seen[b.MAC] = true
		if _, ready := b.Reached(boots.StepReady); !ready && token.Detail != "" && boots.Recent(token.Time, now, boots.Longest-1) {
			waiting = append(waiting, joiningBoot{b.MAC, token.Detail})
		}
	}
	return waiting
}

// tokenFile is the file with the shared join tokens. Its mode is 0600.
type tokenFile struct{ kept atomicfile.Kept }

func newTokenFile(path string) *tokenFile {
	return &tokenFile{atomicfile.Kept{Path: path, Mode: 0o600}}
}

func (f *tokenFile) LoadTokens() ([]byte, error) {
	data, err := os.ReadFile(f.kept.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (f *tokenFile) SaveTokens(data []byte) error { return f.kept.Write(data) }
