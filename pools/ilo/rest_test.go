package ilo_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/ilosim"
	"drover/pools/ilo"
)

// site starts a server with a certificate of its own and says how to get at it.
func site(t *testing.T, h http.Handler, c *ilosim.Chassis) *ilo.Site {
	t.Helper()
	s, err := ilosim.ServeHTTPS("127.0.0.1:0", h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	site := &ilo.Site{
		Address: s.Addr, User: c.User, Password: ilo.Secret(c.Password), TLSPin: s.Pin,
		Timeouts: ilo.Timeouts{Command: 2 * time.Second, Backoff: time.Millisecond},
	}
	if err := site.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { site.Close() })
	return site
}

// TestScrapeREST: both ways to write links, and what may go wrong.
func TestScrapeREST(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault ilosim.Fault
		times int
		want  error
		says  string
	}{
		{name: "healthy"},
		{name: "links in circles", fault: ilosim.CyclicLinks, times: ilosim.Always},
		{name: "busy for a moment", fault: ilosim.Busy, times: 2},
		{"busy", ilosim.Busy, ilosim.Always, ilo.ErrUnreachable, "503"},
		{"401", ilosim.Unauthorized, ilosim.Always, ilo.ErrRefused, "NoValidSession"},
		{"403", ilosim.Forbidden, ilosim.Always, ilo.ErrRefused, "InsufficientPrivilege"},
		{"500", ilosim.ServerError, ilosim.Always, ilo.ErrUnreachable, "500"},
		{"no MACs", ilosim.NullMACs, ilosim.Always, ilo.ErrUnreadable, "--via ssh"},
		{name: "no power", fault: ilosim.NoPower, times: ilosim.Always},
	} {
		for _, f := range []ilosim.LinkStyle{ilosim.Href, ilosim.OData} {
			t.Run(tt.name+", "+string(f), func(t *testing.T) {
				c := ilosim.New(3, 5, 2, 2)
				c.Edit("c2n1", func(n *ilosim.Node) { n.MACs[0] = "N/A" })
				c.Put(ilosim.Node{Cartridge: 4, Number: 1, Empty: true})
				c.Inject(tt.fault, tt.times)
				inv, err := ilo.ScrapeREST(t.Context(), site(t, c.Handler(f), c))
				if tt.want != nil {
					if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || inv != nil {
						t.Errorf("got %v, want %v that says %q", err, tt.want, tt.says)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				power := "off"
				if tt.fault == ilosim.NoPower {
					power = "unknown"
				}
				got := summary(inv, nil)
				if want := "c2n1 " + power + " 2=94:57:a5:03:02:01 "; len(inv.Nodes) != 9 || !strings.Contains(got, want) {
					t.Errorf("got:\n%swant 9 nodes and %q", got, want)
				}
			})
		}
	}
}

// TestPasswordREST: a wrong one is tried once.
func TestPasswordREST(t *testing.T) {
	c := ilosim.New(1, 45, 1, 2)
	s := site(t, c.Handler(ilosim.OData), c)
	s.Password = "wrong horse"
	_, err := ilo.ScrapeREST(t.Context(), s)
	if !errors.Is(err, ilo.ErrRefused) || c.Logins() != 1 || strings.Contains(fmt.Sprintf("%v %+v", err, *s), "horse") {
		t.Errorf("got %v after %d logins, want %v after one", err, c.Logins(), ilo.ErrRefused)
	}
}

// TestCertificate: without a pin it must be one that is trusted; a pin that does
// not fit is refused before the password is sent; at first use it is pinned.
func TestCertificate(t *testing.T) {
	c := ilosim.New(1, 1, 1, 1)
	good := site(t, c.Handler(ilosim.OData), c)
	pins := &ilo.CertPins{Path: filepath.Join(t.TempDir(), "certs")}
	for _, tt := range []struct {
		name string
		edit func(*ilo.Site)
		want error
		says string
	}{
		{"self-signed", func(s *ilo.Site) { s.TLSPin = "" }, ilo.ErrHostKey, "--tls-pin"},
		{"another pin", func(s *ilo.Site) { s.TLSPin = "sha256:00" }, ilo.ErrHostKey, "want sha256:00"},
		{"the pin in upper case with colons", func(s *ilo.Site) {
			s.TLSPin = strings.ToUpper(s.TLSPin[7:9]) + ":" + s.TLSPin[9:]
		}, nil, ""},
		{"first use", func(s *ilo.Site) { s.TLSPin, s.TLSPins = "", pins }, nil, ""},
		{"second use", func(s *ilo.Site) { s.TLSPin, s.TLSPins = "", pins }, nil, ""},
	} {
		before := c.Logins()
		s := *good
		tt.edit(&s)
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		_, err := ilo.ScrapeREST(t.Context(), &s)
		if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %v that says %q", tt.name, err, tt.want, tt.says)
		}
		if sent := c.Logins() > before; sent != (tt.want == nil) {
			t.Errorf("%s: the password was sent: %t", tt.name, sent)
		}
	}
}

// TestOldTLS: TLS 1.0 and RSA key exchange, for who asks for them.
func TestOldTLS(t *testing.T) {
	c := ilosim.New(1, 2, 1, 1)
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(c.Handler(ilosim.OData))
	srv.TLS = &tls.Config{
		MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	for _, legacy := range []bool{false, true} {
		s := &ilo.Site{
			Address: srv.URL, User: c.User, Password: ilo.Secret(c.Password), Legacy: legacy,
			TLSPins: &ilo.CertPins{Path: filepath.Join(t.TempDir(), "certs")},
		}
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		inv, err := ilo.ScrapeREST(t.Context(), s)
		if legacy && (err != nil || len(inv.Nodes) != 2) || !legacy && !errors.Is(err, ilo.ErrUnreachable) {
			t.Errorf("legacy %t: got %v", legacy, err)
		}
		s.Close()
	}
}

func TestSiteAddress(t *testing.T) {
	for _, tt := range []struct{ address, err string }{
		{"ilo-a1", ""}, {"10.1.2.3:8443", ""}, {"https://ilo-a1/", ""}, {"http://127.0.0.1:80", ""},
		{"http://ilo-a1", "plain HTTP"}, {"ftp://ilo-a1", "is no address"}, {"https://user:x@ilo-a1", "is no address"},
		{"https://ilo-a1/redfish", "is no address"}, {"", "is no address"},
	} {
		s := ilo.Site{Address: tt.address, User: "a"}
		err := s.Open()
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: got %v, want %q", tt.address, err, tt.err)
		}
	}
}
