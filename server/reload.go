package server

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"drover/pools"
)

// settle is the time without changes after which the config is read again: editors
// write a file in several steps.
const settle = 200 * time.Millisecond

// pollEvery is the interval at which the config file and those that it includes are compared
// with those in force. The host may have no inotify instance left, and inotify reports no changes that other
// hosts make on a network file system.
const pollEvery = 3 * time.Second

// watchConfig reloads the config on SIGHUP and when one of its files changes.
func (s *Server) watchConfig(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	events, errs, follow, stop := s.notify()
	defer stop()
	follow()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	changed := time.NewTimer(time.Hour)
	changed.Stop()
	reload := func(why string, way pools.ConfigWay) {
		s.reloadFile(why, way)
		follow()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
			reload("SIGHUP", pools.ConfigBySignal)
		case <-changed.C:
			reload("the file changed", pools.ConfigByFile)
		case <-poll.C:
			if s.Live.Watch().Changed() {
				changed.Reset(settle)
			}
		case <-events: // other files are there, too, and a ConfigMap is swapped by ..data
			if s.Live.Watch().Changed() {
				changed.Reset(settle)
			}
		case err := <-errs:
			s.log.Warn("inotify lost events: polling the config file", "every", pollEvery, "err", err)
		}
	}
}

// notify watches the directories of the config's files by inotify, since editors and
// ConfigMaps replace the files; follow adds those that are new. Without inotify the channels
// are nil.
func (s *Server) notify() (events chan fsnotify.Event, errs chan error, follow, stop func()) {
	watcher, err := s.newWatcher()
	if err == nil {
		if err = watcher.Add(filepath.Dir(s.Live.Farm().Source)); err == nil {
			return watcher.Events, watcher.Errors, func() {
				for _, folder := range s.Live.Watch().Folders() {
					_ = watcher.Add(folder) // what is not there is polled
				}
			}, func() { _ = watcher.Close() }
		}
		err = errors.Join(err, watcher.Close())
	}
	s.log.Warn("no inotify on this host: polling the config file (see sysctl fs.inotify.max_user_instances)", "every", pollEvery, "err", err)
	return nil, nil, func() {}, func() {}
}

// farmChanged tells the parts of a farm that was put in force.
func (s *Server) farmChanged() {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.clusters.Set(s.Live.Farm().Clusters())
	s.clusters.Refresh()
	if s.tenants != nil {
		s.tenants.Set(s.Live.Farm().Clusters())
	}
	s.forgetRemoved()
	s.Hardware.Reload()
	s.rebind()
	s.warnLeased()
	if s.objects != nil {
		s.saveObjects()
		s.objects.watcher.Refresh()
	}
}

// maxWarnings bounds the log lines about nodes that wait for their address.
const maxWarnings = 10

// warnLeased logs the nodes whose address another machine leases, and how many are left out.
func (s *Server) warnLeased() {
	if waiting := s.Live.Farm().Waiting(); len(waiting) > 0 {
		s.log.Warn("nodes of the API are left out until the object is there that is their pool, their subnet or a tag", "nodes", len(waiting), "first", waiting[0].Name, "pool", waiting[0].Pool)
	}
	all := s.Live.Leased()
	for _, e := range all[:min(len(all), maxWarnings)] {
		s.log.Warn("node waits for its address: another machine leases it", "node", e.Node, "err", e)
	}
	if n := len(all) - maxWarnings; n > 0 {
		s.log.Warn("more nodes wait for addresses that other machines lease", "nodes", n)
	}
}
