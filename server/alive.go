package server

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"drover/server/systemd"
)

// tellSystemd says to systemd that the server serves and answers questions, until the returned
// function is called, and before that, when ctx ends, that it stops: unless it begins anew. A
// sign of life is an answer to what each request asks first.
func (s *Server) tellSystemd(ctx context.Context) (end func()) {
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	var told sync.WaitGroup
	told.Go(func() {
		err := systemd.Ready()
		if err == nil {
			err = systemd.Watch(alive, func() { s.Machines.At(netip.IPv4Unspecified()) })
		}
		if err != nil {
			s.log.Warn("cannot notify systemd", "err", err)
		}
	})
	told.Go(func() {
		<-ctx.Done()
		if _, ok := errors.AsType[*Restore](context.Cause(ctx)); !ok {
			_ = systemd.Stopping(s.http.Grace) // it sent the signal, or sees the process end
		}
	})
	return func() {
		stop()
		told.Wait()
	}
}
