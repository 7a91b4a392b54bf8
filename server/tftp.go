package server

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"

	"drover/httpboot/script"
	"drover/pools"
	"drover/tftp"
)

var _ tftp.OnDisk = (*script.File)(nil)

// serveTFTP makes the TFTP server. Its files depend on the machine that requests them.
func (s *Server) serveTFTP(cfg pools.Server, loaders string) {
	s.tftp = s.newTFTP(cfg, cfg.TFTP, loaders)
}

// newTFTP returns a TFTP server of an address.
func (s *Server) newTFTP(cfg pools.Server, addr, loaders string) *tftp.Server {
	files := s.scripts.TFTP()
	return &tftp.Server{
		Addr: addr, Dir: loaders, SinglePort: cfg.TFTPSinglePort, Log: s.part("tftp"), OnTransfer: s.transfer, OnDrop: s.metrics.TFTPDrop, Attrs: attrs,
		Serves: s.Machines.Serves, AnswersAt: s.tftpAddresses(cfg.TFTP), Known: s.known, Booting: s.booting,
		Open: func(client netip.Addr, name string) (tftp.File, error) {
			f, err := files.Open(client, name)
			if err != nil {
				return nil, err
			}
			return f, nil
		},
	}
}

// tftpAddresses returns the function that reports whether TFTP answers requests to an
// address of this host; nil if the address of its listener in the config has a host.
func (s *Server) tftpAddresses(listen string) func(netip.Addr) bool {
	if host, _, err := net.SplitHostPort(listen); err != nil || host != "" {
		return nil
	}
	return s.answersAt
}

// known reports whether a TFTP client is a machine that a node declares, or one in the
// middle of a boot.
func (s *Server) known(client netip.Addr) bool {
	m, ok := s.scripts.At(client)
	return ok && m.Plan != nil && !m.Plan.CatchAll || s.booting(client)
}

// booting reports whether a TFTP client is a machine in the middle of a boot. If another
// host does all of DHCP, no boot is seen before the script: any declared machine counts.
// Nobody outside this host can send from a loopback address.
func (s *Server) booting(client netip.Addr) bool {
	if client.IsLoopback() {
		return true
	}
	m, ok := s.scripts.At(client)
	if !ok || m.Plan == nil {
		return false
	}
	return s.Machines.Booting(m.Plan.Node) || !s.Store.Boots.NeedDiscover && !m.Plan.CatchAll
}

// attrs returns the MAC of a TFTP client as an attribute of its log line.
func attrs(t tftp.Transfer) []slog.Attr {
	if mac := clientOf(t); !mac.IsZero() {
		return []slog.Attr{slog.String("mac", mac.String())}
	}
	return nil
}

// clientOf returns the MAC that was found for a TFTP client when its file was opened;
// zero for an unknown client.
func clientOf(t tftp.Transfer) pools.MAC {
	if f, ok := t.Opened.(*script.File); ok {
		return f.MAC
	}
	if e, ok := errors.AsType[*script.Error](t.Err); ok {
		return e.MAC
	}
	return pools.MAC{}
}
