package web_test

import (
	"fmt"
	"html"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
)

// countedLeases is a large lease table in memory.
type countedLeases struct {
	all   map[netip.Addr]pools.Lease
	lists int
}

func (l *countedLeases) List() (all []pools.Lease) {
	l.lists++
	for _, lease := range l.all {
		all = append(all, lease)
	}
	return all
}

func (l *countedLeases) End(addr netip.Addr, mac pools.MAC, _ time.Time) bool {
	if l.all[addr].MAC != mac {
		return false
	}
	delete(l.all, addr)
	return true
}

// countedUnknowns is a large table of unknown machines in memory.
type countedUnknowns struct {
	all   map[pools.MAC]pools.Unknown
	lists int
}

func (u *countedUnknowns) List() (all []pools.Unknown) {
	u.lists++
	for _, m := range u.all {
		all = append(all, m)
	}
	return all
}

func (u *countedUnknowns) Forget(mac pools.MAC) bool {
	_, ok := u.all[mac]
	delete(u.all, mac)
	return ok
}

func numbered(i int) pools.MAC {
	return pools.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}
}

func numberedAddr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 28, byte(100 + i>>8), byte(i)})
}

// addMany adds nodes n0, n1, ... over the API.
func (s *harness) addMany(t *testing.T, n int) {
	t.Helper()
	var changes []pools.NodeChange
	for i := range n {
		node := pools.PoolNode{Pool: "compute", Node: pools.Node{Name: fmt.Sprint("n", i), MACs: []pools.MAC{numbered(i)}, IP: numberedAddr(i)}}
		changes = append(changes, pools.NodeChange{New: &node})
	}
	if err := s.live.ChangeNodes(changes); err != nil {
		t.Fatal(err)
	}
}

// bulk opens a form for all that a filter describes, and submits it as a browser does.
func (s *harness) bulk(t *testing.T, query string, set ...string) answer {
	t.Helper()
	form := s.browse(t, "/change?all=yes&"+query)
	found := picks.FindStringSubmatch(form)
	if found == nil {
		t.Fatalf("%s: the form has no picks", query)
	}
	given, _ := url.ParseQuery(query)
	v := url.Values{"do": {given.Get("do")}, "picks": {strings.ReplaceAll(html.UnescapeString(found[1]), "\n", "\r\n")}}
	for i := 0; i < len(set); i += 2 {
		v.Set(set[i], set[i+1])
	}
	return s.change(t, v)
}

// TestBulk: a form changes as many machines as there may be, with some looks at the lists and
// one write, whatever their number is.
func TestBulk(t *testing.T) {
	const maxLists = 20
	for _, n := range []int{10_000, 20_000} {
		t.Run(fmt.Sprint("forget ", n), func(t *testing.T) {
			u, m := &countedUnknowns{all: map[pools.MAC]pools.Unknown{}}, &machines{}
			for i := range n {
				u.all[numbered(i)] = pools.Unknown{MAC: numbered(i), Last: epoch, Count: 1}
			}
			s := newHarness(t, func(s *harness) { s.Unknowns, s.Audit = u, m })
			resp := s.bulk(t, "do=forget")
			if resp.Code != 303 || len(u.all) != 0 || len(m.audit) != n {
				t.Errorf("got %d %.500s, %d are left, %d in the audit", resp.Code, resp.Body, len(u.all), len(m.audit))
			}
			if u.lists > maxLists || m.adds != 1 {
				t.Errorf("it took %d lists and %d writes of the audit", u.lists, m.adds)
			}
		})
	}
	t.Run("end leases", func(t *testing.T) {
		const n = 10_000
		l, m := &countedLeases{all: map[netip.Addr]pools.Lease{}}, &machines{}
		for i := range n {
			l.all[numberedAddr(i)] = pools.Lease{Address: numberedAddr(i), MAC: numbered(i), Pool: "catchall", Expires: epoch.Add(time.Hour)}
		}
		s := newHarness(t, func(s *harness) { s.Leases, s.Audit = l, m })
		resp := s.bulk(t, "do=release")
		if resp.Code != 303 || len(l.all) != 0 || len(m.audit) != n || l.lists > maxLists || m.adds != 1 {
			t.Errorf("got %d %.500s, %d are left, %d in the audit, %d lists, %d writes", resp.Code, resp.Body, len(l.all), len(m.audit), l.lists, m.adds)
		}
	})
	t.Run("next boot", func(t *testing.T) {
		const n = 10_000
		next, m := &nextBoots{next: map[string]pools.NextBoot{}}, &machines{}
		checks := 0
		s := newHarness(t, func(s *harness) {
			s.NextBoots, s.Audit = next, m
			s.CheckImage = func(string) error { checks++; return nil }
		})
		s.addMany(t, n)
		resp := s.bulk(t, "do=next&pool=compute", "in-next", "image=debian-12")
		if resp.Code != 303 || len(next.next) != n+2 || next.calls != 1 || len(m.audit) != n+2 || m.adds != 1 || checks > 5 {
			t.Errorf("got %d %.500s, %d are set by %d writes, %d in the audit by %d writes, %d checks of the image", resp.Code, resp.Body, len(next.next), next.calls, len(m.audit), m.adds, checks)
		}
	})
}

// TestTooMany: what is too much for a form is an error that is a page.
func TestTooMany(t *testing.T) {
	s := newHarness(t)
	header := s.session(t)
	many := make([]string, 20_001)
	for i := range many {
		many[i] = fmt.Sprint("n", i)
	}
	for name, values := range map[string]url.Values{
		"at most 20000":       {"do": {"forget"}, "picks": {strings.Join(many, "\n")}},
		"no form of the page": {"do": {"forget"}, "pick": many[:10_001]},
	} {
		resp := s.post(header, values)
		if kind := resp.Header().Get("Content-Type"); resp.Code != 400 || !strings.HasPrefix(kind, "text/html") || !strings.Contains(resp.Body.String(), name) {
			t.Errorf("%s: got %d %s %.300s", name, resp.Code, kind, resp.Body)
		}
	}
}

// TestGone: what is gone since the preview stays, and is reported; the rest is done.
func TestGone(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values url.Values
		goes   func(*harness)
		want   string
		done   func(*harness, *machines) bool
	}{
		{
			"forget", url.Values{"do": {"forget"}, "picks": {"52:54:00:00:00:66 52:54:00:00:00:77"}},
			func(s *harness) { s.Unknowns.Forget(pools.MAC{0x52, 0x54, 0, 0, 0, 0x66}) },
			"stays: no unknown machine has the MAC 52:54:00:00:00:66",
			func(s *harness, _ *machines) bool { return len(s.Unknowns.List()) == 0 },
		}, {
			"end leases", url.Values{"do": {"release"}, "picks": {"10.28.72.10 10.28.72.13"}},
			func(s *harness) {
				l := s.Leases.(*leases)
				(*l)[0].MAC[5] = 0x99
			},
			"it has changed since you have seen it",
			func(s *harness, _ *machines) bool {
				l := s.Leases.(*leases)
				return (*l)[3].Released && (*l)[0].Declined != ""
			},
		}, {
			"power", url.Values{"do": {"power"}, "picks": {"n3 n4"}, "in-action": {"off"}},
			func(s *harness) { s.do(request{method: "DELETE", path: "/api/v1/nodes/n4"}) },
			"stays: there is no such node",
			func(_ *harness, m *machines) bool { return strings.HasPrefix(fmt.Sprint(m.asked), "[off [n3] ") },
		}, {
			"next boot", url.Values{"do": {"next"}, "picks": {"n3 n4"}, "in-next": {"local"}},
			func(s *harness) { _ = s.NextBoots.Set("rescue", "n4") },
			"it has changed since you have seen it",
			func(s *harness, _ *machines) bool {
				return s.NextBoots.Pending("n3") == "local" && s.NextBoots.Pending("n4") == "rescue"
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &machines{}
			s := newHarness(t, func(s *harness) {
				s.Unknowns, s.Leases, s.Power, s.Audit = someUnknowns(), someLeases(), m, m
			})
			s.addNodes(t)
			header := s.session(t)
			tt.values.Set("seen", seen.FindStringSubmatch(s.post(header, tt.values).Body.String())[1])
			tt.values.Set("step", "do")
			tt.goes(s)
			resp := s.post(header, tt.values)
			if resp.Code != 200 || !tt.done(s, m) {
				t.Errorf("got %d; done: %t", resp.Code, tt.done(s, m))
			}
			fixture.WantText(t, "the answer", html.UnescapeString(resp.Body.String()), "Done: 1. Not done: 1", tt.want)
		})
	}
}

// TestLeaseOfAnother: an address that has become another machine's since the preview stays.
func TestLeaseOfAnother(t *testing.T) {
	l := someLeases()
	s := newHarness(t, func(s *harness) { s.Leases = l })
	header := s.session(t)
	values := url.Values{"do": {"release"}, "picks": {"10.28.72.10"}}
	shown := s.post(header, values).Body.String()
	fixture.WantText(t, "the preview", shown, "leased to 52:54:00:00:00:0a", "node node-52540000000a", "pool catchall")
	values.Set("seen", seen.FindStringSubmatch(shown)[1])
	values.Set("step", "do")
	(*l)[3].MAC = pools.MAC{0x52, 0x54, 0, 0, 0, 0xbb}
	resp := s.post(header, values)
	fixture.WantText(t, "the answer", resp.Body.String(), "no longer what you have seen", "leased to 52:54:00:00:00:bb", `value="do">End`)
	if resp.Code != 409 || (*l)[3].Released {
		t.Errorf("got %d; released: %t", resp.Code, (*l)[3].Released)
	}
}

// TestPowerWhileBooting: the state of machines is shown, and does not keep what was shown from
// being done.
func TestPowerWhileBooting(t *testing.T) {
	m := &machines{}
	s := newHarness(t, func(s *harness) { s.Power, s.Audit = m, m })
	header := s.session(t)
	values := url.Values{"do": {"power"}, "picks": {"m1\r\nm2"}, "in-action": {"cycle"}}
	shown := s.post(header, values).Body.String()
	fixture.WantText(t, "the preview", shown, "This will change 2", "it is new")
	values.Set("seen", seen.FindStringSubmatch(shown)[1])
	values.Set("step", "do")
	s.Boots = bootList([]boots.Record{boot(1, "m1", "tenant-a", 5, time.Second, "")})
	if resp := s.post(header, values); resp.Code != 303 || len(m.asked) != 1 {
		t.Errorf("got %d %s, asked %q", resp.Code, resp.Body, m.asked)
	}
}
