package server

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"drover/pools"
	"drover/pools/config"
)

// settle is the time without changes after which the config is read again: editors
// write a file in several steps.
const settle = 200 * time.Millisecond

// watchConfig reloads the config on SIGHUP and when its file changes. It watches the
// directory, since editors and ConfigMaps replace the file.
func (s *Server) watchConfig(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	file := s.Live.Farm().Source
	if err := watcher.Add(filepath.Dir(file)); err != nil {
		return err
	}
	changed := time.NewTimer(time.Hour)
	changed.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
			s.Reload("SIGHUP")
		case <-changed.C:
			s.Reload("the file changed")
		case e := <-watcher.Events:
			switch filepath.Base(e.Name) {
			case filepath.Base(file), "..data": // Kubernetes swaps a mounted ConfigMap by ..data
				changed.Reset(settle)
			}
		case err := <-watcher.Errors:
			s.log.Warn("config is not watched: send SIGHUP after a change", "err", err)
		}
	}
}

// Reload puts the config file in force. If it has mistakes, they are logged and the old
// config stays in force. The text why is the cause in the log.
func (s *Server) Reload(why string) {
	if err := s.Live.Reload(); err != nil {
		s.metrics.reloaded(false)
		s.log.Error("config not reloaded, the old one stays in force", "why", why, "err", err)
		return
	}
	farm := s.Live.Farm()
	s.clusters.Set(farm.Clusters())
	s.clusters.Refresh()
	s.Hardware.Reload()
	s.metrics.reloaded(true)
	s.log.Info("config reloaded", "why", why, "nodes", len(farm.Nodes()))
	if s.Live.NeedsRestart() {
		s.log.Warn("server: changed in the config, which takes a restart")
	}
}

// changes is the live farm, with a hook after each successful change of nodes: the
// clusters then reconcile labels and taints.
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
