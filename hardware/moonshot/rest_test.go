package moonshot_test

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
	"drover/hardware/bmc"
	"drover/hardware/moonshot"
	"drover/pools"
)

// serveREST starts a server with a certificate of its own and returns the login.
func serveREST(t *testing.T, h http.Handler, c *ilosim.Chassis) bmc.Login {
	t.Helper()
	s, err := ilosim.ServeHTTPS("127.0.0.1:0", h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return bmc.Login{
		Address: s.Addr, User: c.User, Password: bmc.Secret(c.Password), TLSPin: s.Pin,
		Timeouts: bmc.Timeouts{Backoff: time.Millisecond},
	}
}

// readREST reads a chassis over REST.
func readREST(t *testing.T, l bmc.Login) (*moonshot.Inventory, error) {
	t.Helper()
	inv, _, err := open(t, l, pools.ViaREST).Inventory(t.Context())
	return inv, err
}

// TestReadREST reads a chassis with both forms of links, and with faults.
func TestReadREST(t *testing.T) {
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
		{"busy", ilosim.Busy, ilosim.Always, bmc.ErrUnreachable, "503"},
		{"401", ilosim.Unauthorized, ilosim.Always, bmc.ErrRefused, "NoValidSession"},
		{"403", ilosim.Forbidden, ilosim.Always, bmc.ErrRefused, "InsufficientPrivilege"},
		{"500", ilosim.ServerError, ilosim.Always, bmc.ErrUnreachable, "500"},
		{"no MACs", ilosim.NullMACs, ilosim.Always, bmc.ErrUnreadable, "--via ssh"},
		{name: "no power", fault: ilosim.NoPower, times: ilosim.Always},
	} {
		for _, f := range []ilosim.LinkStyle{ilosim.Href, ilosim.OData} {
			t.Run(tt.name+", "+string(f), func(t *testing.T) {
				c := ilosim.New(3, 5, 2, 2)
				c.Edit("c2n1", func(n *ilosim.Node) { n.MACs[0] = "N/A" })
				c.Put(ilosim.Node{Cartridge: 4, Number: 1, Empty: true})
				c.Inject(tt.fault, tt.times)
				inv, err := readREST(t, serveREST(t, c.Handler(f), c))
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

// TestPasswordREST: a wrong password is sent once.
func TestPasswordREST(t *testing.T) {
	c := ilosim.New(1, 45, 1, 2)
	s := serveREST(t, c.Handler(ilosim.OData), c)
	s.Password = "wrong horse"
	_, err := readREST(t, s)
	if !errors.Is(err, bmc.ErrRefused) || c.Logins() != 1 || strings.Contains(fmt.Sprintf("%v %+v", err, s), "horse") {
		t.Errorf("got %v after %d logins, want %v after one", err, c.Logins(), bmc.ErrRefused)
	}
}

// TestCertificate: without a pin the certificate must be trusted. A wrong pin is an error
// before the password is sent. With a file of pins the certificate is pinned at first use.
func TestCertificate(t *testing.T) {
	c := ilosim.New(1, 1, 1, 1)
	good := serveREST(t, c.Handler(ilosim.OData), c)
	pins := &bmc.Pins{Path: filepath.Join(t.TempDir(), "certs")}
	for _, tt := range []struct {
		name string
		edit func(*bmc.Login)
		want error
		says string
	}{
		{"self-signed", func(s *bmc.Login) { s.TLSPin = "" }, bmc.ErrHostKey, "--tls-pin"},
		{"another pin", func(s *bmc.Login) { s.TLSPin = "sha256:00" }, bmc.ErrHostKey, "want sha256:00"},
		{"the pin in upper case with colons", func(s *bmc.Login) {
			s.TLSPin = strings.ToUpper(s.TLSPin[7:9]) + ":" + s.TLSPin[9:]
		}, nil, ""},
		{"first use", func(s *bmc.Login) { s.TLSPin, s.Certs = "", pins }, nil, ""},
		{"second use", func(s *bmc.Login) { s.TLSPin, s.Certs = "", pins }, nil, ""},
	} {
		before := c.Logins()
		s := good
		tt.edit(&s)
		_, err := readREST(t, s)
		if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %v that says %q", tt.name, err, tt.want, tt.says)
		}
		if sent := c.Logins() > before; sent != (tt.want == nil) {
			t.Errorf("%s: the password was sent: %t", tt.name, sent)
		}
	}
}

// TestOldTLS: TLS 1.0 and RSA key exchange are allowed with Legacy only.
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
		inv, err := readREST(t, bmc.Login{
			Address: srv.URL, User: c.User, Password: bmc.Secret(c.Password), Legacy: legacy,
			Certs: &bmc.Pins{Path: filepath.Join(t.TempDir(), "certs")},
		})
		if legacy && (err != nil || len(inv.Nodes) != 2) || !legacy && !errors.Is(err, bmc.ErrUnreachable) {
			t.Errorf("legacy %t: got %v", legacy, err)
		}
	}
}
