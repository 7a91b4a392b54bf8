package server

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long the config must be quiet before it is read again: editors
// write a file in several steps.
const settle = 200 * time.Millisecond

// watchConfig reads the config again on SIGHUP and when its file changes. It
// watches the directory: editors and ConfigMaps replace the file.
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
			case filepath.Base(file), "..data": // the latter is how Kubernetes swaps a mounted ConfigMap
				changed.Reset(settle)
			}
		case err := <-watcher.Errors:
			s.log.Warn("config is not watched: send SIGHUP after a change", "err", err)
		}
	}
}

// Reload puts the config file in force. A bad one is reported, and the old one
// stays.
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
