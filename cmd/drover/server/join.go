package server

import (
	"errors"
	"io/fs"
	"os"

	"drover/pools/atomicfile"
	"drover/pools/boots"
	"drover/pools/kube/approve"
)

// certificate counts a certificate request. A kubelet's request for its first
// certificate is a step of its boot; one that is denied or left alone may come from
// anywhere.
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
