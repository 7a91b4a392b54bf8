// Package network follows the network of the host: interfaces that come, change and go
// ([Interfaces]), and listeners at addresses that do ([Listener]). It does not know the
// protocols that are served there.
package network

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/wait"
)

const (
	// settle is the time for which changes of interfaces are collected: one command
	// makes several.
	settle = 100 * time.Millisecond

	// pollEvery is the interval at which the interfaces are read without a message of
	// the kernel, which may have been lost.
	pollEvery = 10 * time.Second
)

// Interfaces notices changes of the interfaces of this host and of their addresses.
type Interfaces struct {
	Log *slog.Logger
	// Changed is called after each change, before the parts are woken.
	Changed func()

	messages *os.File // of the kernel; nil: the interfaces are polled
	wake     []chan struct{}

	mu      sync.Mutex
	waiting map[string]error // interfaces that are not served, and why
}

// Listen opens the socket on which the kernel reports changes (rtnetlink(7)).
func (n *Interfaces) Listen() {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err == nil {
		n.messages = os.NewFile(uintptr(fd), "netlink")
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR})
	}
	if err != nil {
		n.Log.Warn("polling network interfaces", "every", pollEvery, "err", err)
	}
}

// Subscribe returns a channel that gets a value after each change. All calls come before
// Run.
func (n *Interfaces) Subscribe() <-chan struct{} {
	c := make(chan struct{}, 1)
	n.wake = append(n.wake, c)
	return c
}

// Run reports changes until ctx ends.
func (n *Interfaces) Run(ctx context.Context) error {
	events := make(chan struct{}, 1)
	if n.messages != nil {
		stop := context.AfterFunc(ctx, func() { _ = n.messages.Close() })
		defer stop()
		go n.read(events)
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
		case <-events:
			_ = wait.Sleep(ctx, settle) // ctx is asked next
		}
		n.Changed()
		for _, c := range n.wake {
			poke(c)
		}
	}
}

// read waits for messages until the socket is closed. Their content does not matter.
func (n *Interfaces) read(events chan<- struct{}) {
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

// Part is a part of the server that serves on one interface.
type Part interface {
	Listen() error
	Serve(ctx context.Context) error
	// Changed reports whether the interface is another one than that of Listen.
	Changed() bool
}

// Follow serves on an interface until ctx ends. When the interface changes, the part begins
// anew; while there is none, Follow waits. listening reports whether Listen was called.
func (n *Interfaces) Follow(ctx context.Context, name string, p Part, changes <-chan struct{}, listening bool) error {
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
		n.Report(name, err)
	}
}

// serveUntilChanged serves until the interface changes or ctx ends.
func serveUntilChanged(ctx context.Context, p Part, changes <-chan struct{}) error {
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

// Report notes that an interface is served, or why it is not, and logs a change of that.
func (n *Interfaces) Report(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, waited := n.waiting[name]
	switch {
	case err == nil:
		delete(n.waiting, name)
		n.Log.Info("serving on the interface", "interface", name)
	case !waited || before.Error() != err.Error():
		if n.waiting == nil {
			n.waiting = map[string]error{}
		}
		n.waiting[name] = err
		n.Log.Warn("interface not served until it is ready", "interface", name, "err", err)
	}
}

// Missing returns the interfaces that are not served, and why.
func (n *Interfaces) Missing() map[string]error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.waiting)
}
