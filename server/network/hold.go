package network

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// releaseTime limits the wait for connections that were accepted and that nobody reads yet.
const releaseTime = time.Second

// Fixed returns a listener at the address of inner.
func Fixed(inner net.Listener) *Listener {
	l := newListener()
	l.add(netip.Addr{}, inner)
	return l
}

// Server returns the listener for a server that closes it when it ends. That keeps the sockets:
// connections then wait in the kernel for the next server, until Close.
func (l *Listener) Server() net.Listener { return served{l} }

type served struct{ listener *Listener }

func (s served) Accept() (net.Conn, error) { return s.listener.Accept() }

func (s served) Addr() net.Addr { return s.listener.Addr() }

// Close ends Accept alone.
func (s served) Close() error {
	s.listener.stop()
	return nil
}

// Release has the sockets accept no more: what arrives waits in the kernel. Connections that were
// accepted before go to Accept, which must go on meanwhile.
func (l *Listener) Release() {
	l.mu.Lock()
	l.released = true
	for _, inner := range l.open {
		if d, ok := inner.(interface{ SetDeadline(time.Time) error }); ok {
			_ = d.SetDeadline(time.Unix(1, 0)) // accept ends; an error leaves it as it is
		}
	}
	l.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		l.accepting.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(releaseTime):
	}
}

// Files returns the sockets, for another process. The caller closes the files.
func (l *Listener) Files() (files []*os.File, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, inner := range l.open {
		if t, ok := inner.(*net.TCPListener); ok {
			f, fileErr := t.File()
			if fileErr != nil {
				err = errors.Join(err, fileErr)
				continue
			}
			files = append(files, f)
		}
	}
	return files, err
}

// Inherited are the listeners that a server before has left, by their addresses. The zero value
// has none.
type Inherited struct{ all map[string]net.Listener }

// Inherit returns the listeners of a server before.
func Inherit(all []net.Listener) *Inherited {
	i := &Inherited{all: map[string]net.Listener{}}
	for _, l := range all {
		if _, twice := i.all[l.Addr().String()]; twice {
			_ = l.Close() // the same socket, stored again
			continue
		}
		i.all[l.Addr().String()] = l
	}
	return i
}

// Listen is [net.Listen] for TCP, with the listener of a server before if it has one at this
// address. It closes those of the same port that are in the way.
func (i *Inherited) Listen(address string) (net.Listener, error) {
	if i != nil {
		for at, l := range i.all {
			if sameAddress(at, address) {
				delete(i.all, at)
				return l, nil
			}
		}
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) && i.closePort(address) { // the config has others of its addresses now
		return net.Listen("tcp", address)
	}
	return l, err
}

// closePort closes the listeners at the port of an address that are in its way, as one of them is
// at all addresses, and reports whether there were some.
func (i *Inherited) closePort(address string) (some bool) {
	if i == nil {
		return false
	}
	want, err := net.ResolveTCPAddr("tcp", address)
	for at, l := range i.all {
		if has, ok := l.Addr().(*net.TCPAddr); ok && err == nil && has.Port == want.Port && (all(has) || all(want)) {
			_ = l.Close() // it accepts no more in any case
			delete(i.all, at)
			some = true
		}
	}
	return some
}

// Close closes those that nobody has asked for.
func (i *Inherited) Close() {
	for at, l := range i.all {
		_ = l.Close() // another config has another address
		delete(i.all, at)
	}
}

// sameAddress reports whether a socket at the address has is what a listener at want would be.
func sameAddress(has, want string) bool {
	a, err := net.ResolveTCPAddr("tcp", has)
	b, err2 := net.ResolveTCPAddr("tcp", want)
	if err != nil || err2 != nil || a.Port != b.Port || b.Port == 0 {
		return false
	}
	if all(b) { // one socket for both families, unless the host has no IPv6: then it is at 0.0.0.0
		return all(a)
	}
	return b.IP.Equal(a.IP) && a.Zone == b.Zone
}

// all reports whether an address is all those of the host.
func all(a *net.TCPAddr) bool { return a.IP == nil || a.IP.IsUnspecified() }
