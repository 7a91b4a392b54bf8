package server

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"

	"drover/pools"
	"drover/pools/atomicfile"
	"drover/pools/boots"
	"drover/pools/kube"
	"drover/pools/kube/approve"
)

// What clusters need to know of boots before they let a node in.

// attend makes the clusters ask the farm and the boots, and tell of the
// certificate requests that they meet.
func (s *Server) attend(c *kube.Clusters, tokens string) {
	c.StartLoops = true
	c.AddressOf = func(mac pools.MAC) (netip.Addr, bool) {
		l, ok := s.Store.Leases.Of(mac)
		return l.Address, ok
	}
	c.OnRequest = s.certificate
	c.Tokens = tokenFile(tokens)
}

// certificate is told of each certificate request. That of a kubelet that gets its
// first certificate is a step of its boot; what is denied or left alone may be
// anybody's.
func (s *Server) certificate(r approve.Request) {
	s.metrics.certificate(r)
	if r.Serving || r.Node == "" {
		return
	}
	e := boots.Event{Step: boots.StepCSR}
	switch r.Result {
	case "approved":
		e.Detail = r.Name
	case "error":
		e.Error = r.Why
	default:
		return
	}
	if b, ok := s.Machines.LastBoot(r.Node); ok {
		s.step(b.MAC, e)
	}
}

// tokenFile keeps shared join tokens in a file that only drover reads.
type tokenFile string

func (f tokenFile) LoadTokens() ([]byte, error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (f tokenFile) SaveTokens(data []byte) error { return atomicfile.Write(string(f), data, 0o600) }
