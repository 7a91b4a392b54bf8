package server

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"drover/internal/printable"
	"drover/kube/cluster"
	"drover/kube/objects"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/config/declared"
	"drover/pools/resolve"
)

const (
	// objectsFile of the state directory has the objects that were in force last.
	objectsFile = "objects.json"
	// stuckEvery is the interval at which boots without progress are looked for.
	stuckEvery = 30 * time.Second
)

// adminObjects connects the objects of the admin cluster with the farm and its boots.
type adminObjects struct {
	watcher *objects.Watcher
	file    string

	mu    sync.Mutex
	stuck map[string]string // why the boot of a node makes no progress
}

// lastObjects returns the objects that were in force when the last server ended.
func (s *Server) lastObjects(dir string, farm *resolve.Farm) []*declared.Object {
	namespace := farm.Config.Server.Objects.Namespace
	if namespace == "" {
		return nil
	}
	all, err := declared.Load(filepath.Join(dir, objectsFile), namespace)
	if err != nil {
		s.log.Error("stored objects of the admin cluster are lost: only the config file is active until they are read again", "err", err)
	}
	return all
}

// newObjects makes the watcher of the objects; nil if the config does not ask for them.
func (s *Server) newObjects(dir string) *adminObjects {
	farm := s.Live.Farm()
	server := farm.Config.Server
	if server.Objects.Namespace == "" {
		return nil
	}
	a := &adminObjects{file: filepath.Join(dir, objectsFile), stuck: map[string]string{}}
	a.watcher = &objects.Watcher{
		Cluster: cluster.NewAdmin(farm.Path(server.AdminKubeconfig), time.Now), Namespace: server.Objects.Namespace,
		Farm: s.Live, Log: s.part("objects"), Machine: s.machineStatus, Host: s.hostStatus,
		Changed: func(declared.Choice) { s.farmChanged() },
	}
	return a
}

// runObjects follows the objects until ctx is done.
func (s *Server) runObjects(ctx context.Context) error {
	var scan sync.WaitGroup
	scan.Go(func() {
		tick := time.NewTicker(stuckEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.findStuck()
			}
		}
	})
	defer scan.Wait()
	return s.objects.watcher.Run(ctx)
}

// saveObjects stores the objects in force.
func (s *Server) saveObjects() {
	if s.objects == nil {
		return
	}
	if err := declared.Save(s.objects.file, s.objects.watcher.Namespace, s.Live.Objects().InForce); err != nil {
		s.log.Error("active objects not stored: after a restart older ones are active until the admin cluster answers", "err", err)
	}
}

// hostStatus returns the network of a host outside a cluster, and why its Node is not as it
// should be.
func (s *Server) hostStatus(cluster, name string) (netip.Prefix, error) {
	hosts, err := s.clusters.Hosts(cluster)
	if err != nil {
		return netip.Prefix{}, err
	}
	return hosts.State(name)
}

// findStuck makes Events of boots without progress.
func (s *Server) findStuck() {
	now := map[string]string{}
	for _, b := range boots.MarkStuck(s.boots().List(), time.Now()) {
		if b.Stuck == nil {
			continue
		}
		now[b.Node] = fmt.Sprintf("no progress after step %s", b.Stuck.After)
		s.objects.watcher.Warn(b.Node, b.ID, objects.BootStuck, now[b.Node]+since(b.Stuck.Since))
	}
	s.objects.mu.Lock()
	s.objects.stuck = now
	s.objects.mu.Unlock()
	s.objects.watcher.Refresh()
}

func since(t time.Time) string { return ", since " + t.UTC().Format(time.RFC3339) }

// booted tells the object of a machine of a step.
func (s *Server) booted(b boots.Record, step boots.StepTime) {
	if s.objects == nil {
		return
	}
	if step.Error != "" {
		s.objects.watcher.Warn(b.Node, b.ID, objects.BootFailed, fmt.Sprintf("step %s: %s", step.Step, printable.Line(step.Error, maxStepError)))
		return
	}
	s.objects.watcher.Booted(b.Node)
}

// maxStepError bounds what a machine says of its error, in bytes.
const maxStepError = 500

// machineStatus returns the newest boot of a node.
func (s *Server) machineStatus(node string) (m pools.MachineStatus) {
	b, ok := s.Machines.LastBoot(node)
	if !ok {
		return m
	}
	last, _ := b.Furthest()
	m.Step, m.Since, m.Image, m.Tenant, m.Error = string(last.Step), last.Time.UTC().Truncate(time.Second), b.Image, b.Cluster, b.Error
	m.ImageGeneration = b.Generation
	if last.Step.Rank() >= boots.StepJoined.Rank() {
		m.Node = b.Node
	}
	if p := s.Machines.Of(b.MAC); p.Address.IsValid() {
		m.Address = p.Address.String()
	} else if p := s.Machines.Of6(b.MAC); p.Address.IsValid() {
		m.Address = p.Address.String()
	}
	s.objects.mu.Lock()
	defer s.objects.mu.Unlock()
	if m.Error == "" {
		m.Error = s.objects.stuck[node]
	}
	return m
}
