package web_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/pools"
)

// leases is a lease table in memory.
type leases []pools.Lease

func (l *leases) List() []pools.Lease { return slices.Clone(*l) }

func (l *leases) End(addr netip.Addr, mac pools.MAC, now time.Time) bool {
	for i, lease := range *l {
		if s := lease.State(now); lease.Address == addr && lease.MAC == mac && (s == pools.LeaseActive || s == pools.LeaseDeclined) {
			(*l)[i].Released, (*l)[i].Declined = true, ""
			return true
		}
	}
	return false
}

// unknowns is a table of unknown machines in memory.
type unknowns []pools.Unknown

func (u *unknowns) List() []pools.Unknown { return slices.Clone(*u) }

func (u *unknowns) Forget(mac pools.MAC) bool {
	n := len(*u)
	*u = slices.DeleteFunc(*u, func(u pools.Unknown) bool { return u.MAC == mac })
	return len(*u) < n
}

func lease(last byte, expires time.Duration) pools.Lease {
	mac := pools.MAC{0x52, 0x54, 0, 0, 0, last}
	return pools.Lease{
		Address: netip.AddrFrom4([4]byte{10, 28, 72, last}), MAC: mac,
		Node: "node-" + mac.Hex(), Pool: "catchall", Expires: epoch.Add(expires),
	}
}

// someLeases returns a lease in each state.
func someLeases() *leases {
	l := leases{lease(13, time.Hour), lease(12, -time.Hour), lease(11, time.Hour), lease(10, time.Hour)}
	l[0].Declined = "in use by 02:00:00:00:00:99"
	l[2].Released = true
	return &l
}

// someUnknowns returns a plain machine, and one that sends hostile text.
func someUnknowns() *unknowns {
	return &unknowns{
		{
			MAC: pools.MAC{0x52, 0x54, 0, 0, 0, 0x77}, First: epoch.Add(-time.Hour), Last: epoch.Add(-time.Minute), Count: 3,
			Pool: "catchall", Address: netip.MustParseAddr("10.28.72.10"), Firmware: pools.UEFIx64, Class: "PXEClient:Arch:00007:UNDI:003016",
		},
		{
			MAC: pools.MAC{0x52, 0x54, 0, 0, 0, 0x66}, First: epoch.Add(-time.Hour), Last: epoch.Add(-time.Hour), Count: 1,
			Class: `<img src=x onerror=alert(1)>` + "\x1b[2J\u202e" + strings.Repeat("A", 4096),
			Relay: netip.MustParseAddr("10.29.0.1"), Circuit: `"><script>alert(1)</script>`, Remote: "sw1",
		},
	}
}

func TestLeasesAPI(t *testing.T) {
	const path = "/api/v1/leases"
	tests := []struct {
		name, method, path string
		code               int
		want               string
	}{
		{"all, by address", "GET", path, 200, `[{"address":"10.28.72.10","mac":"52:54:00:00:00:0a","node":"node-52540000000a","pool":"catchall","expires":"2026-11-20T13:00:00Z","state":"active"},{"address":"10.28.72.11"`},
		{"declined ones", "GET", path + "?state=declined", 200, `[{"address":"10.28.72.13","mac":"52:54:00:00:00:0d","node":"node-52540000000d","pool":"catchall","expires":"2026-11-20T13:00:00Z","declined":"in use by 02:00:00:00:00:99","state":"declined"}]`},
		{"released ones", "GET", path + "?state=released", 200, `[{"address":"10.28.72.11",`},
		{"expired ones", "GET", path + "?state=expired&pool=catchall", 200, `[{"address":"10.28.72.12",`},
		{"of another pool", "GET", path + "?pool=compute", 200, `[]`},
		{"in no state", "GET", path + "?state=gone", 400, `state "gone": want one of ["active" "expired" "released" "declined"]`},
		{"by what is no parameter", "GET", path + "?nodes=x", 400, `unknown parameter "nodes"`},
		{"add", "POST", path, 405, "accepts GET, not POST"},
		{"end an active one", "DELETE", path + "/10.28.72.10", 204, ""},
		{"lift a quarantine", "DELETE", path + "/10.28.72.13", 204, ""},
		{"end an expired one", "DELETE", path + "/10.28.72.12", 404, "no lease of 10.28.72.12 is in force"},
		{"end what was never leased", "DELETE", path + "/10.28.0.11", 404, "no lease of 10.28.0.11"},
		{"end what is no address", "DELETE", path + "/m1", 400, `"m1" is not an IP address`},
		{"get one", "GET", path + "/10.28.72.10", 405, "accepts DELETE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newHarness(t, func(s *harness) { s.Leases = someLeases() })
			resp := s.do(request{method: tt.method, path: tt.path})
			got := unescaped(compact(resp.Body.String()))
			if resp.Code != tt.code || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %s\nwant %d with %s", resp.Code, got, tt.code, tt.want)
			}
		})
	}
}

// TestLeaseEnds: the log has the client that ended a lease, and the lease.
func TestLeaseEnds(t *testing.T) {
	s := newHarness(t, func(s *harness) { s.Leases = someLeases() })
	s.do(request{method: "DELETE", path: "/api/v1/leases/10.28.72.13"})
	for _, want := range []string{`msg="lease ended"`, "address=10.28.72.13", "mac=52:54:00:00:00:0d", "client=192.0.2.1:1234", "declined=\"in use"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("want %s in the log, got %s", want, s.log)
		}
	}
	if resp := s.do(request{method: "DELETE", path: "/api/v1/leases/10.28.72.13"}); resp.Code != 404 {
		t.Errorf("twice: got %d", resp.Code)
	}
}

func TestUnknownAPI(t *testing.T) {
	const path = "/api/v1/unknown"
	tests := []struct {
		name, method, path string
		code               int
		want               string
	}{
		{"list", "GET", path, 200, `[{"mac":"52:54:00:00:00:77","first":"2026-11-20T11:00:00Z","last":"2026-11-20T11:59:00Z","count":3,"pool":"catchall","address":"10.28.72.10","firmware":"uefi-x64","class":"PXEClient:Arch:00007:UNDI:003016"},{"mac":"52:54:00:00:00:66"`},
		{"list by what is no parameter", "GET", path + "?node=x", 400, `unknown parameter "node"`},
		{"forget", "DELETE", path + "/52-54-00-00-00-77", 204, ""},
		{"forget what is not there", "DELETE", path + "/52-54-00-00-00-78", 404, "no unknown machine has the MAC 52:54:00:00:00:78"},
		{"forget what is no MAC", "DELETE", path + "/m1", 400, `"m1" is not a MAC address`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newHarness(t, func(s *harness) { s.Unknowns = someUnknowns() })
			resp := s.do(request{method: tt.method, path: tt.path})
			got := unescaped(compact(resp.Body.String()))
			if resp.Code != tt.code || !strings.Contains(got, tt.want) {
				t.Errorf("got %d %s\nwant %d with %s", resp.Code, got, tt.code, tt.want)
			}
		})
	}
	t.Run("a server without the table", func(t *testing.T) {
		if got := compact(newHarness(t).do(request{path: path}).Body.String()); got != "[]" {
			t.Errorf("got %s", got)
		}
	})
}

// TestAddedIsKnown: adding a node removes its machine from the unknown machines.
func TestAddedIsKnown(t *testing.T) {
	u := unknowns{{MAC: pools.MAC{0x52, 0x54, 0, 0, 0, 3}, Count: 1}}
	s := newHarness(t, func(s *harness) { s.Unknowns = &u })
	if resp := s.do(request{method: "POST", path: "/api/v1/nodes", body: n3}); resp.Code != 201 || len(u) != 0 {
		t.Errorf("got %d, unknown %v", resp.Code, u)
	}
}

// TestInboxIsBounded: invented MACs do not make the page long.
func TestInboxIsBounded(t *testing.T) {
	u := unknowns{}
	for i := range 4096 {
		u = append(u, pools.Unknown{MAC: pools.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}, Last: epoch, Count: 1})
	}
	s := newHarness(t, func(s *harness) { s.Unknowns = &u })
	page := s.browse(t, "/unknown")
	for _, want := range []string{`Unknown <span class="n">4096</span>`, "1 to 100 of 4096", "all 4096, not only this page"} {
		if !strings.Contains(page, want) {
			t.Errorf("want %s in the page", want)
		}
	}
	if n := strings.Count(page, "do=add"); n != 100 || len(page) > 100_000 {
		t.Errorf("got %d machines in %d bytes, want 100", n, len(page))
	}
}
