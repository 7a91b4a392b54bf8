package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"drover/server/network"
)

// listenOn binds a part that serves an interface, and adds the function that serves it. If
// the error of Listen is notReady, the part begins once the interface is ready. name is that
// of the interface in reports, part that of the function.
func (s *Server) listenOn(name, part string, p network.Part, notReady error, serve map[string]func(context.Context) error) error {
	err := p.Listen()
	if err != nil && !errors.Is(err, notReady) {
		return err
	}
	if err != nil {
		s.networks.Report(name, err)
	}
	changes := s.networks.Subscribe()
	serve[part] = func(ctx context.Context) error { return s.networks.Follow(ctx, name, p, changes, err == nil) }
	return nil
}

// listenNodes opens a node-facing listener: at the boot addresses if its address in the
// config has no host, else as listen does.
func (s *Server) listenNodes(address string, inherited *network.Inherited, listen func() (net.Listener, error)) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "0" {
		inner, err := listen()
		return s.fixed(inner, err)
	}
	if host != "" {
		inner, err := inherited.Listen(address)
		return s.fixed(inner, err)
	}
	l := network.NewListener(port, inherited, s.part("http"))
	if err := l.Bind(network.BootAddresses(s.Live.Farm())); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.nodes, s.sockets = append(s.nodes, l), append(s.sockets, l)
	return l.Server(), nil
}

// fixed returns the node-facing listener at the address of inner.
func (s *Server) fixed(inner net.Listener, err error) (net.Listener, error) {
	if err != nil {
		return nil, err
	}
	l := network.Fixed(inner)
	s.sockets = append(s.sockets, l)
	return l.Server(), nil
}

// listenSocket opens the socket for people of this host, if there is one. Without it the
// server serves: the TCP listener has all of it.
func (s *Server) listenSocket() []net.Listener {
	if s.Web.Socket == nil {
		return nil
	}
	l, err := s.Web.ListenSocket()
	if err != nil {
		s.log.Error("cannot open server.socket", "path", s.Web.Socket.Path, "err", err)
		return nil
	}
	return []net.Listener{l}
}

// readdress puts the addresses that this host has now in force: in the farm, which names
// them to machines, and in the node-facing listeners.
func (s *Server) readdress() {
	if s.Live.Readdress() {
		farm := s.Live.Farm()
		s.log.Info("the addresses of this host have changed", "addresses", fmt.Sprint(slices.Concat(farm.Locals(), farm.Locals6())))
	}
	s.rebind()
}

// rebind has the node-facing listeners answer at the boot addresses alone.
func (s *Server) rebind() {
	addresses := network.BootAddresses(s.Live.Farm())
	s.bootAddresses.Store(&addresses)
	for _, l := range s.nodes {
		if err := l.Bind(addresses); err != nil {
			s.part("http").Warn("not listening at an address of a boot network", "err", err)
		}
	}
}

// answersAt reports whether TFTP answers requests to an address of this host.
func (s *Server) answersAt(a netip.Addr) bool {
	all := s.bootAddresses.Load()
	return all == nil || *all == nil || a.IsLoopback() || slices.ContainsFunc(*all, func(b netip.Addr) bool { return b.WithZone("") == a.WithZone("") })
}
