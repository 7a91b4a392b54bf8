package server

import (
	"crypto/tls"
	"fmt"
	"path/filepath"

	"drover/httpboot"
	"drover/pools"
)

// secureNodes gives the node-facing listener its HTTPS side, when the config
// has one.
func (s *Server) secureNodes(dir string, farm *pools.Farm) error {
	url := farm.SecureURL()
	if url == "" {
		return nil
	}
	sec := &httpboot.Secure{Addr: farm.Config.Server.HTTPS, URL: url}
	var err error
	if t := farm.Config.Server.NodeTLS; t != nil {
		if sec.Certificate, err = tls.LoadX509KeyPair(farm.Path(t.Cert), farm.Path(t.Key)); err != nil {
			return fmt.Errorf("server.nodeTLS: %w", err)
		}
	} else {
		file := filepath.Join(dir, "https.key")
		var isNew bool
		if sec.Certificate, isNew, err = httpboot.NodeKey(file); err != nil {
			return err
		}
		if isNew {
			s.log.Info("made the key of the HTTPS listener for nodes", "file", file)
		}
	}
	pin, err := sec.Pin()
	if err != nil {
		return fmt.Errorf("server.nodeTLS: %w", err)
	}
	s.log.Info("nodes get config and join by HTTPS", "url", url, "pin", "sha256:"+pin)
	s.http.Secure = sec
	return nil
}
