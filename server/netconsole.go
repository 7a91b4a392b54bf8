package server

import (
	"context"
	"fmt"
	"net/netip"

	"drover/pools"
	"drover/server/netconsole"
	"drover/web/page"
)

// serveNetconsole makes the listener for what kernels print, if the config asks for one.
func (s *Server) serveNetconsole(cfg pools.Server) {
	if cfg.Netconsole == "" {
		return
	}
	s.netconsole = &netconsole.Server{Addr: cfg.Netconsole, Log: new(netconsole.Log), Sender: s.sender, OnDatagram: s.metrics.Netconsole, Errors: s.part("netconsole")}
}

// listenNetconsole binds its socket, and adds the function that serves it.
func (s *Server) listenNetconsole(serve map[string]func(context.Context) error) error {
	if s.netconsole == nil {
		return nil
	}
	if err := s.netconsole.Listen(); err != nil {
		return fmt.Errorf("netconsole: %w", err)
	}
	serve["netconsole"] = s.netconsole.Serve
	return nil
}

// sender returns the machine that sends from an address.
func (s *Server) sender(from netip.Addr) (m netconsole.Sender, ok bool) {
	found, ok := s.Machines.At(from)
	if !ok || found.Plan == nil {
		return m, false
	}
	b, ok := s.Store.Boots.Current(found.MAC)
	return netconsole.Sender{MAC: found.MAC, Declared: !found.Plan.CatchAll, Boot: b.ID}, ok
}

// console returns the lines that a machine has sent in a boot; listening is false if nothing
// receives them.
func (s *Server) console(mac pools.MAC, boot string) (lines []page.ConsoleLine, listening bool) {
	if s.netconsole == nil {
		return nil, false
	}
	for _, l := range s.netconsole.Log.Of(mac) {
		if l.Boot == boot {
			lines = append(lines, page.ConsoleLine{Time: l.Time, Text: l.Text})
		}
	}
	return lines, true
}
