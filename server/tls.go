package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"drover/httpboot"
	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/resolve"
	"drover/server/certificate"
	"drover/server/network"
	"drover/web/auth"
)

// nodeTLS returns the TLS settings of the node-facing listener; nil if the config
// has none.
func (s *Server) nodeTLS(dir string, farm *resolve.Farm) (*httpboot.TLS, error) {
	if farm.Config.Server.HTTPS == "" {
		return nil, nil
	}
	side := &httpboot.TLS{Addr: farm.Config.Server.HTTPS}
	var err error
	if t := farm.Config.Server.NodeTLS; t != nil {
		if side.Certificate, err = tls.LoadX509KeyPair(farm.Path(t.Cert), farm.Path(t.Key)); err != nil {
			return nil, fmt.Errorf("server.nodeTLS: %w", err)
		}
		s.metrics.CertificateEnd("nodes", func() time.Time { return side.Certificate.Leaf.NotAfter })
	} else {
		file := filepath.Join(dir, httpsKey)
		var isNew bool
		if side.Certificate, isNew, err = httpboot.NodeKey(file); err != nil {
			return nil, err
		}
		if isNew {
			s.log.Info("made the key of the HTTPS listener for nodes", "file", file)
		}
	}
	pin, err := side.Pin()
	if err != nil {
		return nil, fmt.Errorf("server.nodeTLS: %w", err)
	}
	s.log.Info("node listener with TLS", "url", farm.SecureURL(), "pin", pin)
	return side, nil
}

// loadAPICredentials gives the people-facing listener its tokens and its certificate.
// It makes the token if there is none.
func (s *Server) loadAPICredentials(o Options, farm *resolve.Farm) error {
	file := filepath.Join(o.State, apiToken)
	token, isNew, err := auth.LoadToken(file)
	if err != nil {
		return err
	}
	s.Web.Token = token
	if s.Web.Named, err = auth.OpenTokens(filepath.Join(o.State, apiTokens), time.Now); err != nil {
		return err
	}
	s.Web.API.APITokens = s.Web.Named
	if isNew {
		s.log.Info("made the token for the REST API and the page", "file", file)
	}
	if err := s.trustProvider(farm); err != nil {
		return err
	}
	if farm.Config.Server.APITLS == nil {
		return nil
	}
	if err := s.certify(o.State, farm); err != nil {
		return fmt.Errorf("server.apiTLS: %w", err)
	}
	return s.trustClients(farm)
}

// certify gives the people-facing listener its certificate.
func (s *Server) certify(dir string, farm *resolve.Farm) error {
	var source certificate.Source
	if t := farm.Config.Server.APITLS; t.SelfSigned {
		own := &certificate.Own{Dir: dir, Names: s.apiNames, Log: s.part("web"), Now: time.Now}
		if err := own.Open(); err != nil {
			return err
		}
		source = own
	} else {
		files := &certificate.Files{Cert: farm.Path(t.Cert), Key: farm.Path(t.Key), Log: s.part("web")}
		if err := files.Load(); err != nil {
			return err
		}
		source = files
	}
	s.apiCert = source.File()
	s.metrics.CertificateEnd("api", func() time.Time { return source.Current().Leaf.NotAfter })
	s.Web.TLS = certificate.Config(source)
	s.Web.API.Pin = func() string { return certificate.Pin(source.Pinned()) }
	s.log.Info("API listening with TLS", "api", farm.Config.Server.API, "pin", s.Web.API.Pin())
	return nil
}

// apiNames returns the addresses and names for a certificate of the people-facing listener.
func (s *Server) apiNames() []string {
	farm := s.Live.Farm()
	cfg := farm.Config.Server
	all := append(hosts(cfg, farm), "localhost", "127.0.0.1", "::1")
	if t := cfg.APITLS; t != nil {
		all = append(all, t.Names...)
	}
	return append(all, network.Names(cfg.API)...)
}

// trustClients makes the people-facing listener take the certificates of the config's
// authorities.
func (s *Server) trustClients(farm *resolve.Farm) error {
	c := farm.Config.Server.ClientCertificates
	if c == nil {
		return nil
	}
	pool, err := authorities(farm.Path(c.CA))
	if err != nil {
		return fmt.Errorf("server.clientCertificates.ca: %w", err)
	}
	s.Web.TLS.ClientCAs, s.Web.TLS.ClientAuth = pool, tls.VerifyClientCertIfGiven
	s.Web.Grants = func() []pools.Grant {
		if c := s.Live.Farm().Config.Server.ClientCertificates; c != nil {
			return c.Roles
		}
		return nil
	}
	return nil
}

// authorities returns the certificates in a file.
func authorities(file string) (*x509.CertPool, error) {
	text, err := atomicfile.Read(file, maxCA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}

// maxCA bounds a file of authorities, in bytes.
const maxCA = 1 << 20

// hosts returns the names under which clients reach the people-facing listener,
// according to the config.
func hosts(cfg pools.Server, farm *resolve.Farm) []string {
	var all []string
	if a := farm.Address(); a.IsValid() {
		all = append(all, a.String())
	}
	if host, _, err := net.SplitHostPort(cfg.API); err == nil && host != "" {
		all = append(all, strings.ToLower(host))
	}
	if o := cfg.OIDC; o != nil {
		if u, err := url.Parse(o.URL); err == nil {
			all = append(all, strings.ToLower(u.Hostname()))
		}
	}
	return all
}
