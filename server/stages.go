package server

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"drover/server/network"
	"drover/server/systemd"
)

// The stages in which the parts of a server end. What a machine needs later in its boot ends
// later: one that gets an address meanwhile gets its loader and its script, too.
const (
	others   = iota // the API, and what only runs in the background
	transfer        // TFTP
	dhcping
	webbing // HTTP for nodes
	numStages
)

// stageOf returns the stage in which a part ends.
func stageOf(part string) int {
	for prefix, stage := range map[string]int{"tftp": transfer, "dhcp": dhcping, "router": dhcping, "http": webbing} {
		if strings.HasPrefix(part, prefix) {
			return stage
		}
	}
	return others
}

// stages are the parts of a server that run.
type stages struct {
	failed context.CancelCauseFunc
	ends   [numStages]context.CancelFunc
	ctx    [numStages]context.Context
	parts  [numStages]sync.WaitGroup
}

func newStages(ctx context.Context, failed context.CancelCauseFunc) *stages {
	s := &stages{failed: failed}
	for i := range s.ctx {
		s.ctx[i], s.ends[i] = context.WithCancel(context.WithoutCancel(ctx))
	}
	return s
}

// start runs a part. An error of it is the end of the server.
func (s *stages) start(name string, serve func(context.Context) error) {
	i := stageOf(name)
	s.parts[i].Go(func() {
		if err := serve(s.ctx[i]); err != nil {
			s.failed(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// end ends the parts of a stage, and waits for them.
func (s *stages) end(stage int) {
	s.ends[stage]()
	s.parts[stage].Wait()
}

// endAll ends all parts at once.
func (s *stages) endAll() {
	for _, end := range s.ends {
		end()
	}
	for i := range s.parts {
		s.parts[i].Wait()
	}
}

// drain ends the parts so that no machine is refused: until the transfers have ended that run
// now, all that a boot needs is served. Connections that come after that wait for the next process,
// if systemd keeps the sockets.
func (s *Server) drain(parts *stages) {
	var rest sync.WaitGroup
	rest.Go(func() { parts.end(others) })
	s.http.Drain()
	parts.end(transfer)
	parts.end(dhcping)
	s.releaseSockets()
	parts.end(webbing)
	rest.Wait()
}

// releaseSockets gives the sockets of HTTP to systemd, if it runs the server, and has them accept
// no more.
func (s *Server) releaseSockets() {
	for _, l := range s.sockets {
		files, err := l.Files()
		storeErr := systemd.Store(files)
		for _, f := range files {
			_ = f.Close() // systemd has a copy
		}
		if err != nil || storeErr != nil {
			s.log.Warn("machines that boot during the restart are refused", "err", err, "systemd", storeErr)
		}
		l.Release()
	}
}

// inheritSockets takes what the process before has left.
func (s *Server) inheritSockets() *network.Inherited {
	all, err := systemd.Stored()
	if err != nil {
		s.log.Warn("not all inherited sockets are in use", "err", err)
	}
	return network.Inherit(all)
}
