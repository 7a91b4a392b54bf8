package server

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

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
	c.Booting = s.boots
	c.AddressOf = s.Store.Leases.AddressOf
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
	if mac, ok := s.booting(r.Node); ok {
		s.step(mac, e)
	}
}

// booting returns the MAC that the node of that name booted with last.
func (s *Server) booting(node string) (mac pools.MAC, ok bool) {
	var last time.Time
	for _, m := range s.macs(node) {
		if b, known := s.Store.Boots.Current(m); known && !b.Started.Before(last) {
			mac, last, ok = m, b.Started, true
		}
	}
	return mac, ok
}

// macs returns the MACs that the node of that name boots with.
func (s *Server) macs(node string) (macs []pools.MAC) {
	if n, ok := s.Live.Farm().Node(node); ok {
		macs = n.MACs
	}
	if mac, ok := s.macOf(node); ok && !slices.Contains(macs, mac) {
		macs = append([]pools.MAC{mac}, macs...)
	}
	return macs
}

// boots tells whether a machine of the node of that name is booting: within the
// time that any boot takes.
func (s *Server) boots(node string) bool {
	for _, mac := range s.macs(node) {
		if b, ok := s.Store.Boots.Current(mac); ok && time.Since(b.Started) < resumeAge {
			return true
		}
	}
	return false
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
