package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"drover/pools"
	"drover/pools/resolve"
	"drover/web/auth/oidc"
)

// trustProvider makes the page take the logins of the config's provider of OpenID Connect.
func (s *Server) trustProvider(farm *resolve.Farm) error {
	o := farm.Config.Server.OIDC
	if o == nil {
		return nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.CA != "" {
		pool, err := authorities(farm.Path(o.CA))
		if err != nil {
			return fmt.Errorf("server.oidc.ca: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	var secret func(context.Context) (string, error)
	if ref := o.ClientSecret; ref.IsReference() {
		secret = func(ctx context.Context) (string, error) {
			text, err := references{s.Live.Farm, s.clusters}.Read(ctx, ref)
			if err == nil && len(text) == 0 {
				err = errors.New("it is empty")
			}
			return string(text), err
		}
		if _, err := ReadFile(farm, ref.FromFile); ref.FromFile != "" && err != nil {
			s.part("web").Warn("nobody can log in by server.oidc yet", "clientSecret", ref.Place(), "err", err)
		}
	}
	s.Web.Provider = oidc.New(*o, &http.Client{Transport: transport}, secret, time.Now)
	s.Web.Groups = func() []pools.Grant {
		if o := s.Live.Farm().Config.Server.OIDC; o != nil {
			return o.Roles
		}
		return nil
	}
	return nil
}
