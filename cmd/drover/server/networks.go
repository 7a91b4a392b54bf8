package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover/pools/wait"
)

const (
	// networksSettle is the time for which changes of interfaces are collected: one command
	// makes several.
	networksSettle = 100 * time.Millisecond

	// networksPoll is the interval at which the interfaces are read without a message of
	// the kernel, which may have been lost.
	networksPoll = 10 * time.Second
)

// networks notices changes of the interfaces of this host and of their addresses.
type networks struct {
	log *slog.Logger
	// changed is called after each change, before the parts are woken.
	changed func()

	messages *os.File // of the kernel; nil: the interfaces are polled
	wake     []chan struct{}

	mu      sync.Mutex
	waiting map[string]error // interfaces that are not served, and why
}

// listen opens the socket on which the kernel reports changes (rtnetlink(7)).
func (n *networks) listen() {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err == nil {
		n.messages = os.NewFile(uintptr(fd), "netlink")
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR})
	}
	if err != nil {
		n.log.Warn("changes of network interfaces are polled", "every", networksPoll, "err", err)
	}
}

// subscribe returns a channel that gets a value after each change. All calls come before
// run.
func (n *networks) subscribe() <-chan struct{} {
	c := make(chan struct{}, 1)
	n.wake = append(n.wake, c)
	return c
}

// run reports changes until ctx ends.
func (n *networks) run(ctx context.Context) error {
	events := make(chan struct{}, 1)
	if n.messages != nil {
		stop := context.AfterFunc(ctx, func() { _ = n.messages.Close() })
		defer stop()
		go n.read(events)
	}
	poll := time.NewTicker(networksPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
		case <-events:
			_ = wait.Sleep(ctx, networksSettle) // ctx is asked next
		}
		n.changed()
		for _, c := range n.wake {
			poke(c)
		}
	}
}

// read waits for messages until the socket is closed. Their content does not matter.
func (n *networks) read(events chan<- struct{}) {
	b := make([]byte, 64<<10)
	for {
		_, err := n.messages.Read(b)
		if err != nil && !errors.Is(err, unix.ENOBUFS) { // messages were lost: something has changed
			return
		}
		poke(events)
	}
}

// poke sends to a channel of length one, unless there is a value in it.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// part is a part of the server that serves on one interface.
type part interface {
	Listen() error
	Serve(ctx context.Context) error
	// Changed reports whether the interface is another one than that of Listen.
	Changed() bool
}

// follow serves on an interface until ctx ends. When the interface changes, the part begins
// anew; while there is none, follow waits. listening reports whether Listen was called.
func (n *networks) follow(ctx context.Context, name string, p part, changes <-chan struct{}, listening bool) error {
	for {
		if listening {
			if err := serveUntilChanged(ctx, p, changes); err != nil || ctx.Err() != nil {
				return err
			}
		} else {
			select {
			case <-ctx.Done():
				return nil
			case <-changes:
			}
		}
		err := p.Listen()
		listening = err == nil
		n.report(name, err)
	}
}

// serveUntilChanged serves until the interface changes or ctx ends.
func serveUntilChanged(ctx context.Context, p part, changes <-chan struct{}) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx) }()
	for {
		select {
		case err := <-ended:
			return err
		case <-changes:
			if p.Changed() {
				stop()
				return <-ended
			}
		}
	}
}

// report notes that an interface is served, or why it is not, and logs a change of that.
func (n *networks) report(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, waited := n.waiting[name]
	switch {
	case err == nil:
		delete(n.waiting, name)
		n.log.Info("serving on the interface", "interface", name)
	case !waited || before.Error() != err.Error():
		if n.waiting == nil {
			n.waiting = map[string]error{}
		}
		n.waiting[name] = err
		n.log.Warn("an interface is not served until it is ready", "interface", name, "err", err)
	}
}

// missing returns the interfaces that are not served, and why.
func (n *networks) missing() map[string]error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.waiting)
}
