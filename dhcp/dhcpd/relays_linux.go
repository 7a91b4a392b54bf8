package dhcpd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"drover/dhcp/shed"
	"drover/internal/wait"
	"drover/pools"
)

const (
	// relayLife is how long a relay agent counts as confirmed.
	relayLife = 10 * time.Minute

	// maxRelays bounds the relay agents that count as confirmed.
	maxRelays = 4096
)

// relays is the set of relay agents, and of routers on the way from them, that were
// confirmed. The filters of the sockets have the set as well.
type relays struct {
	server *Server

	mu     sync.Mutex
	until  map[pools.MAC]time.Time
	passed uint32 // share of the DISCOVERs that the filters let pass
}

func newRelays(s *Server) *relays {
	return &relays{server: s, until: map[pools.MAC]time.Time{}, passed: shed.All}
}

// pass sets the share of the DISCOVERs that the filters let pass, in parts of shed.All.
func (rs *relays) pass(share uint32) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.passed = share
	return rs.install(rs.server.udp())
}

// has reports whether a relay agent was confirmed.
func (rs *relays) has(mac pools.MAC) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	_, ok := rs.until[mac]
	return ok
}

// add adds a relay agent that was confirmed.
func (rs *relays) add(mac pools.MAC, now time.Time) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if _, ok := rs.until[mac]; ok || len(rs.until) >= maxRelays {
		return
	}
	rs.until[mac] = now.Add(relayLife)
	if err := rs.install(rs.server.udp(), rs.server.observer); err != nil {
		rs.server.log().Warn("dhcp: relay agent does not fit in the socket filter: using the slow path", "mac", mac, "error", err)
	}
}

// run removes the relay agents whose time is over, until ctx ends.
func (rs *relays) run(ctx context.Context) {
	for wait.Sleep(ctx, relayLife/10) == nil {
		rs.expire(rs.server.now())
	}
}

// expire removes the relay agents whose time is over. Their next packet adds them again.
func (rs *relays) expire(now time.Time) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	n := len(rs.until)
	maps.DeleteFunc(rs.until, func(_ pools.MAC, end time.Time) bool { return now.After(end) })
	if len(rs.until) == n {
		return
	}
	if err := rs.install([]*socket{rs.server.observer}, rs.server.udp()...); err != nil {
		rs.server.log().Warn("dhcp: socket filter for relay agents failed", "error", err)
	}
}

// install sets the filters of sockets in this order, up to the first error. A packet
// that arrives meanwhile is received twice rather than by no socket. The caller holds
// the lock.
func (rs *relays) install(first []*socket, then ...*socket) error {
	macs := slices.Collect(maps.Keys(rs.until))
	for _, s := range append(slices.Clip(first), then...) {
		program := socketFilter(macs, rs.passed)
		if s == rs.server.observer {
			program = rs.server.observed(macs)
		}
		if err := s.filter(program); err != nil {
			return err
		}
	}
	return nil
}

// filter replaces the filter of a socket.
func (s *socket) filter(program []bpf.Instruction) error {
	var refused error
	err := s.raw.Control(func(fd uintptr) { refused = attach(int(fd), program) })
	return errors.Join(err, refused)
}

// attach sets the filter of a socket.
func attach(fd int, program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
	if err != nil {
		return fmt.Errorf("set filter of %d instructions: %w", len(code), err)
	}
	return nil
}
