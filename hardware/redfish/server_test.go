package redfish_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/ilosim"
	"drover/hardware/bmc"
	"drover/hardware/redfish"
)

// serve starts an iLO and returns a client for it.
func serve(t *testing.T, i *ilosim.ILO) *redfish.Client {
	t.Helper()
	s, err := ilosim.ServeHTTPS("127.0.0.1:0", i.Handler())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c := i.Chassis()
	client, err := redfish.Open(bmc.Login{
		Address: s.Addr, User: c.User, Password: bmc.Secret(c.Password), TLSPin: s.Pin,
		Timeouts: bmc.Timeouts{Backoff: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// TestILO reads all generations, over xmldata and over Redfish. The MAC of the processor
// itself is never among the MACs.
func TestILO(t *testing.T) {
	const macs = "[9c:8c:6e:09:00:00 9c:8c:6e:09:00:01]"
	for _, tt := range []struct {
		name     string
		gen      int
		edit     func(*ilosim.ILO)
		xml, red string // MACs, or part of the error
	}{
		{"iLO 3", 3, nil, "[]", "404"},
		{"iLO 4", 4, nil, macs, macs},
		{"iLO 5", 5, nil, macs, macs},
		{"iLO 6", 6, nil, macs, macs},
		{"iLO 5 1.10", 5, func(i *ilosim.ILO) { i.Erratum = true }, macs, macs},
		{"before the first POST", 5, func(i *ilosim.ILO) { i.MACs = []string{"", "00:00:00:00:00:00"} }, "[]", "[]"},
		{"MACs that are null", 5, func(i *ilosim.ILO) { i.Chassis().Inject(ilosim.NullMACs, ilosim.Always) }, macs, "[]"},
		{"switched off", 5, func(i *ilosim.ILO) { i.NoXMLData = true }, "404", macs},
		{"an invalid MAC", 5, func(i *ilosim.ILO) { i.MACs[1] = "9C:8C" }, `"9c:8c" is not a MAC`, `"9C:8C" is not a MAC`},
		{"wrong password", 5, func(i *ilosim.ILO) { i.Chassis().Inject(ilosim.Unauthorized, ilosim.Always) }, macs, "login refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sim := ilosim.NewILO(tt.gen, 9)
			if tt.edit != nil {
				tt.edit(sim)
			}
			s := serve(t, sim)
			check := func(via, want string, got redfish.Server, err error) {
				text := fmt.Sprint(got.MACs)
				if err != nil {
					text = err.Error()
				} else if got.ID() != "CZ360980J1" || got.UUID != "37333036-3831-5a43-0009-303538304a31" || got.Product != "ProLiant DL360 Gen9" {
					t.Errorf("%s: got %+v", via, got)
				}
				if !strings.Contains(text, want) {
					t.Errorf("%s: got %s, want %s", via, text, want)
				}
			}
			got, err := s.XMLData(t.Context())
			check("xmldata", tt.xml, got, err)
			got, err = s.Server(t.Context())
			check("redfish", tt.red, got, err)
		})
	}
}

func TestParseXMLData(t *testing.T) {
	const server = `<RIMP><HSI><SBSN>CZ320580J3      </SBSN><SPN>ProLiant BL460c G7</SPN><cUUID>37333036-AAAA</cUUID>`
	for _, tt := range []struct{ name, text, want string }{
		{"iLO 3", `<?xml version="1.0"?>` + server + `</HSI><MP><PN>Integrated Lights-Out 3 (iLO 3)</PN></MP></RIMP>`, "CZ320580J3 37333036-aaaa ProLiant BL460c G7 []"},
		{"other case", strings.ToLower(server) + `</hsi></rimp>`, "cz320580j3 37333036-aaaa proliant bl460c g7 []"},
		{"another encoding and its bytes", `<?xml version="1.0" encoding="ISO-8859-1"?><RIMP><HSI><SBSN>CZ` + "\xe9\x01" + `</SBSN></HSI></RIMP>`, "CZ?"},
		{"a list of other MACs", server + `<VIRTUAL><MACADDR>9c:8c:6e:00:00:09</MACADDR></VIRTUAL></HSI></RIMP>`, "CZ320580J3 37333036-aaaa ProLiant BL460c G7 []"},
		{"an enclosure", `<RIMP><INFRA2><SBSN>X</SBSN></INFRA2></RIMP>`, "enclosure"},
		{"a web page", `<!DOCTYPE html><html><body>Not found</body></html>`, "neither a serial number"},
		{"cut off", server, "xmldata"},
		{"an entity", `<!DOCTYPE r [<!ENTITY a "b">]><RIMP><HSI><SBSN>&a;</SBSN></HSI></RIMP>`, "&a;"},
		{"nested", strings.Repeat("<a>", 100), "deeper than 64"},
		{"too long", strings.Repeat(" ", 2<<20), "more than"},
		{"nothing", "", "neither"},
	} {
		s, err := redfish.ParseXMLData([]byte(tt.text))
		got := fmt.Sprint(s.Serial, " ", s.UUID, " ", s.Product, " ", s.MACs)
		if err != nil {
			got = err.Error()
			if !errors.Is(err, bmc.ErrUnreadable) {
				t.Errorf("%s: got %v, want %v", tt.name, err, bmc.ErrUnreadable)
			}
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func FuzzParseXMLData(f *testing.F) {
	f.Add([]byte(`<RIMP><HSI><SBSN>A</SBSN><NICS><NIC><MACADDR>9c:8c:6e:00:00:09</MACADDR></NIC></NICS></HSI></RIMP>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := redfish.ParseXMLData(data)
		if err == nil && s.ID() == "" {
			t.Error("a server without an identity")
		}
	})
}

// TestRedfishPower switches machines with iLO 4 to 6.
func TestRedfishPower(t *testing.T) {
	for gen := 4; gen <= 6; gen++ {
		sim := ilosim.NewILO(gen, 1)
		c := sim.Chassis()
		c.PowerDelay = 20 * time.Millisecond
		var last ilosim.Action
		c.OnAction = func(_ string, a ilosim.Action) { last = a }
		s := bmc.Switcher{Poll: 5 * time.Millisecond, Wait: 2 * time.Minute}
		driver := &redfish.System{Client: serve(t, sim)}
		for range 2 {
			r := s.Do(t.Context(), bmc.PXE, []bmc.Machine{{Name: "a", Driver: driver}})[0]
			if r.Err != nil || r.State != bmc.On || !last.PXE {
				t.Errorf("iLO %d: got %+v, PXE %t", gen, r, last.PXE)
			}
		}
	}
}

func TestAddress(t *testing.T) {
	for _, tt := range []struct{ address, err string }{
		{"ilo-a1", ""}, {"10.1.2.3:8443", ""}, {"https://ilo-a1/", ""}, {"http://127.0.0.1:80", ""},
		{"http://ilo-a1", "plain HTTP"}, {"ftp://ilo-a1", "is no address"}, {"https://user:x@ilo-a1", "is no address"},
		{"https://ilo-a1/redfish", "is no address"}, {"", "is no address"},
	} {
		_, err := redfish.Open(bmc.Login{Address: tt.address, User: "a"})
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: got %v, want %q", tt.address, err, tt.err)
		}
	}
}

// TestBrokenPin: a broken line of the file of pins is in the way of its own address alone.
func TestBrokenPin(t *testing.T) {
	s, err := ilosim.ServeHTTPS("127.0.0.1:0", ilosim.NewILO(5, 9).Handler())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c := ilosim.NewILO(5, 9).Chassis()
	for _, tt := range []struct {
		name, text, says string
		broken           int
	}{
		{"of another address", "10.0.0.2:443 sha256:12\n10.0.0.3:443\n", "", 2},
		{"of this address", s.Addr + " sha256:12\n", "remove the line", 0},
		{"of this address, without a fingerprint", s.Addr + "\n", "remove the line", 0},
		{"beside a valid one", s.Addr + "\n" + s.Addr + " " + s.Pin + "\n", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			broken := 0
			pins := &bmc.Pins{Path: filepath.Join(t.TempDir(), "known_certs"), OnBroken: func(string) { broken++ }}
			if err := os.WriteFile(pins.Path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			client, err := redfish.Open(bmc.Login{
				Address: s.Addr, User: c.User, Password: bmc.Secret(c.Password), Certs: pins, Timeouts: bmc.Timeouts{Backoff: time.Millisecond},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			_, err = client.Server(t.Context())
			if (err == nil) != (tt.says == "") || err != nil && (!errors.Is(err, bmc.ErrPins) || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			if broken != tt.broken {
				t.Errorf("%d lines were reported, want %d", broken, tt.broken)
			}
		})
	}
}
