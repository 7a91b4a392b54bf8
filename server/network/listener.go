package network

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"drover/internal/ifaddr"
	"drover/pools/resolve"
)

// BootAddresses returns the addresses of this host at which machines may boot: the boot
// addresses and those that the served interfaces have in the declared subnets, all IPv6
// addresses of the served interfaces, and loopback. It returns nil for all addresses of the
// host: no subnet is declared, or a boot address is that of another host, which may forward
// to any.
func BootAddresses(f *resolve.Farm) []netip.Addr {
	host := hostAddresses()
	found := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	add := func(a netip.Addr) {
		if !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	for i := range f.Config.Subnets {
		a, _ := f.BootAddress(i)
		switch {
		case host[a]:
			add(a)
		case a.IsValid():
			return nil
		}
	}
	for _, t := range f.Config.Tags {
		for _, rule := range t.Loaders.Items {
			if host[rule.Server] {
				add(rule.Server)
			}
		}
	}
	for _, a := range servedAddresses(f.Config.Server.Interfaces, host) {
		if a.Is6() || f.Config.SubnetOf(a) >= 0 {
			add(a)
		}
	}
	if len(f.Config.Subnets) == 0 {
		return nil
	}
	slices.SortFunc(found, netip.Addr.Compare)
	return found
}

// hostAddresses returns the addresses of this host, without zones.
func hostAddresses() map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	addrs, _ := net.InterfaceAddrs() // without any, no address is known
	for _, p := range ifaddr.Prefixes(addrs) {
		all[p.Addr()] = true
	}
	return all
}

// servedAddresses returns the addresses of the named interfaces, link-local ones with their
// zone. Without a name it returns those of the host that need no zone.
func servedAddresses(names []string, host map[netip.Addr]bool) (found []netip.Addr) {
	for _, name := range names {
		i, err := net.InterfaceByName(name)
		if err != nil {
			continue // it may come later
		}
		addrs, _ := i.Addrs() // none: it has gone
		for _, p := range ifaddr.Prefixes(addrs) {
			a := p.Addr()
			if a.Is6() && a.IsLinkLocalUnicast() {
				a = a.WithZone(name)
			}
			found = append(found, a)
		}
	}
	for a := range host {
		if len(names) == 0 && !a.IsLinkLocalUnicast() {
			found = append(found, a)
		}
	}
	return found
}

// InUse adds the remedy to the error of a port that another program has. It returns other
// errors as they are.
func InUse(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w (another program has the port: ss -lnp shows it)", err)
	}
	return err
}

// Listener accepts connections at several addresses of this host, which may change.
type Listener struct {
	port      string
	log       *slog.Logger
	inherited *Inherited
	conns     chan net.Conn
	closed    chan struct{}
	once      sync.Once
	accepting sync.WaitGroup

	mu       sync.Mutex
	open     map[netip.Addr]net.Listener // by address; the zero Addr is all
	released bool
}

// NewListener returns a listener at a port. It listens at no address yet. A server before may have
// left sockets.
func NewListener(port string, inherited *Inherited, log *slog.Logger) *Listener {
	l := newListener()
	l.port, l.inherited, l.log = port, inherited, log
	return l
}

func newListener() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{}), open: map[netip.Addr]net.Listener{}}
}

// add accepts the connections of a socket. It requires that the lock is held, once others know l.
func (l *Listener) add(a netip.Addr, inner net.Listener) {
	l.open[a] = inner
	l.accepting.Go(func() { l.accept(inner) })
}

// stop ends Accept.
func (l *Listener) stop() { l.once.Do(func() { close(l.closed) }) }

// Bind listens at these addresses, and no longer at others; nil is all addresses of the
// host. An address that the host does not have is left out.
func (l *Listener) Bind(addresses []netip.Addr) error {
	if addresses == nil {
		addresses = []netip.Addr{{}}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return nil
	}
	for a, inner := range l.open {
		if !slices.Contains(addresses, a) {
			_ = inner.Close() // it accepts no more in any case
			delete(l.open, a)
		}
	}
	var errs []error
	for _, a := range addresses {
		if l.open[a] != nil {
			continue
		}
		host := ""
		if a.IsValid() {
			host = a.String()
		}
		inner, err := l.inherited.Listen(net.JoinHostPort(host, l.port))
		if errors.Is(err, syscall.EADDRNOTAVAIL) || a.Is6() && err != nil { // an IPv6 address is not ready at once (RFC 4862, section 5.4)
			l.log.Debug("not listening yet", "address", a, "err", err)
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l.add(a, inner)
	}
	return errors.Join(errs...)
}

// accept passes on the connections of one address until it is closed.
func (l *Listener) accept(inner net.Listener) {
	for {
		c, err := inner.Accept()
		switch {
		case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded): // or released
			return
		case err != nil: // the process has no file descriptor left
			time.Sleep(50 * time.Millisecond)
			continue
		}
		select {
		case l.conns <- c:
		case <-l.closed:
			_ = c.Close() // nobody reads it
			return
		}
	}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *Listener) Close() error {
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for a, inner := range l.open {
		errs = append(errs, inner.Close())
		delete(l.open, a)
	}
	return errors.Join(errs...)
}

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr {
	if l.port == "" { // fixed
		for _, inner := range l.open {
			return inner.Addr()
		}
	}
	a, _ := net.ResolveTCPAddr("tcp", ":"+l.port) // for messages alone
	return a
}
