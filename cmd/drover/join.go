package main

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"drover/pools"
	"drover/pools/kube"
)

// What clusters need to know of boots before they let a node in.

// attend makes the clusters ask the farm and the boots, and tell of the
// certificate requests that they meet.
func (s *server) attend(c *kube.Clusters, tokens string) {
	c.Attend = true
	c.Expected = s.boots
	c.AddressOf = s.store.Leases.AddressOf
	c.OnRequest = s.metrics.certificate
	c.Tokens = tokenFile(tokens)
}

// boots tells whether a machine of the node of that name is booting: within the
// time that any boot takes.
func (s *server) boots(node string) bool {
	var macs []pools.MAC
	if n, ok := s.live.Farm().Node(node); ok {
		macs = n.MACs
	}
	if mac, ok := s.macOf(node); ok {
		macs = append([]pools.MAC{mac}, macs...)
	}
	for _, mac := range macs {
		if b, ok := s.store.Boots.Current(mac); ok && time.Since(b.Started) < resumeAge {
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

func (f tokenFile) SaveTokens(data []byte) error { return replaceFile(string(f), data, 0o600) }
