package peers_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/server/peers"
)

// server is one server, with what it was told. What it is compared by may change.
type server struct {
	*peers.Peers
	addr netip.AddrPort

	mu      sync.Mutex
	known   []boots.Claim
	told    []boots.Claim
	digests map[string]string
	skew    time.Duration
	away    bool
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) claims() []boots.Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

func newServer(t *testing.T, id string) *server {
	s := &server{digests: map[string]string{"config": "1", "images": "2"}}
	s.Peers = &peers.Peers{
		Key: []byte("a key of both"), ID: id, Version: "1.0", IsOwn: func(netip.Addr) bool { return false }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Digests: func() map[string]string { s.mu.Lock(); defer s.mu.Unlock(); return s.digests },
		Claims:  func() []boots.Claim { s.mu.Lock(); defer s.mu.Unlock(); return s.known },
		Told:    func(_ string, c boots.Claim) { s.set(func() { s.told = append(s.told, c) }) },
		Now:     func() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return time.Now().Add(s.skew) },
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		away := s.away
		s.mu.Unlock()
		if away {
			panic(http.ErrAbortHandler)
		}
		body, _ := io.ReadAll(r.Body)
		answer, signed, err := s.Answer(body, r.Header.Get(pools.SignatureHeader))
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		w.Header().Set(pools.SignatureHeader, signed)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(web.Close)
	s.addr = netip.MustParseAddrPort(strings.TrimPrefix(web.URL, "http://"))
	return s
}

// run runs a server until the end of the test. What it asks at intervals, [peers.Peers.Tell] makes
// it ask now.
func run(t *testing.T, s *server, others ...*server) {
	for _, o := range others {
		s.Others = append(s.Others, o.addr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func claim(n byte) boots.Claim {
	return boots.Claim{MAC: pools.MAC{2, 5: n}, Nonce: make([]byte, 32), Key: make([]byte, 32), Issued: time.Now().UTC()}
}

func hasTold(s *server, n byte) func() bool {
	return func() bool {
		return slices.ContainsFunc(s.claims(), func(c boots.Claim) bool { return c.MAC == claim(n).MAC })
	}
}

// A server is told of each claim, also of those that were made while it was away.
func TestTell(t *testing.T) {
	a, b := newServer(t, "a"), newServer(t, "b")
	b.away, a.Others = true, []netip.AddrPort{b.addr}
	for n := range byte(250) {
		a.Tell(claim(n))
	}
	run(t, a)
	b.set(func() { b.away = false })
	for n := range byte(250) {
		if n == 0 {
			a.Tell(claim(n)) // asks again now
		}
		fixture.Eventually(t, "the claim", hasTold(b, n))
	}
	fixture.Eventually(t, "the state", func() bool {
		s := a.Status()
		return len(s) == 1 && s[0].Answers && s[0].Problem == ""
	})
}

// A server that has just started is told what it may have missed, at once.
func TestStarts(t *testing.T) {
	a, b := newServer(t, "a"), newServer(t, "b")
	a.known = []boots.Claim{claim(7)}
	b.away = true
	run(t, a, b)
	fixture.Eventually(t, "that b is away", func() bool { a.Tell(claim(1)); return len(a.Status()) == 1 })
	b.set(func() { b.away = false })
	run(t, b, a) // it asks a
	fixture.Eventually(t, "the claim", hasTold(b, 7))
}

// What makes that a boot cannot go on at the other server is told.
func TestDiffers(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(b *server)
		want string
	}{
		"config":  {func(b *server) { b.digests = map[string]string{"config": "3", "images": "2"} }, `it differs in ["config"]`},
		"unknown": {func(b *server) { b.digests = nil }, `it differs in ["config" "images"]`},
		"version": {func(b *server) { b.Version = "1.1\n" }, `it differs in ["version (1.1`},
		"clock":   {func(b *server) { b.skew = 2 * time.Minute }, "its clock differs by 2m0s"},
		"no time": {func(b *server) { b.skew = time.Hour }, "the clocks of both servers differ by 1h0m0s"},
		"key":     {func(b *server) { b.Key = []byte("another") }, "is not signed with nodes.key of this server"},
		"copy":    {func(b *server) { b.ID = "a" }, "it has the server.id of this one"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newServer(t, "a"), newServer(t, "b")
			b.set(func() { tt.edit(b) })
			run(t, a, b)
			fixture.Eventually(t, "the problem", func() bool {
				s := a.Status()
				return len(s) == 1 && s[0].Answers && strings.Contains(s[0].Problem, tt.want)
			})
		})
	}
}

// A server that does not answer twice is a problem, until it answers.
func TestAway(t *testing.T) {
	a, b := newServer(t, "a"), newServer(t, "b")
	b.away = true
	run(t, a, b)
	fixture.Eventually(t, "the problem", func() bool {
		a.Tell(claim(1))
		s := a.Status()
		return len(s) == 1 && !s[0].Answers && strings.HasPrefix(s[0].Problem, "it does not answer: ")
	})
	b.set(func() { b.away = false })
	fixture.Eventually(t, "that it answers", func() bool {
		a.Tell(claim(1))
		s := a.Status()
		return s[0].Answers && s[0].Problem == ""
	})
}

// One list serves all servers: each leaves itself out, even at an address that it does not know as
// its own.
func TestSelf(t *testing.T) {
	a, b := newServer(t, "a"), newServer(t, "b")
	run(t, a, a, b)
	a.Tell(claim(1))
	fixture.Eventually(t, "the claim", hasTold(b, 1))
	fixture.Eventually(t, "the state", func() bool { return len(a.Status()) == 1 })
	if len(a.claims()) > 0 {
		t.Error("it told itself")
	}
}

// Nothing counts that has no signature of a server with the same key, and no answer to another
// request.
func TestForged(t *testing.T) {
	a, b := newServer(t, "a"), newServer(t, "b")
	var body []byte
	var signature string
	spy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		b.set(func() { body, signature = got, r.Header.Get(pools.SignatureHeader) })
		answer, _, _ := b.Answer(got, signature)
		w.Header().Set(pools.SignatureHeader, signature) // not that of the answer
		_, _ = w.Write(answer)
	}))
	t.Cleanup(spy.Close)
	a.Others = []netip.AddrPort{netip.MustParseAddrPort(strings.TrimPrefix(spy.URL, "http://"))}
	a.Tell(claim(1))
	run(t, a)
	fixture.Eventually(t, "the problem", func() bool {
		s := a.Status()
		return len(s) == 1 && strings.Contains(s[0].Problem, "its answer is not signed")
	})
	b.set(func() { b.told = nil })
	for name, try := range map[string][2]string{
		"none": {string(body), ""}, "of another": {string(body) + " ", signature}, "not JSON": {"{", signature},
	} {
		if _, _, err := b.Answer([]byte(try[0]), try[1]); err == nil || len(b.claims()) > 0 {
			t.Errorf("%s: got %v, told %v", name, err, b.claims())
		}
	}
	if text := string(body); !json.Valid(body) || strings.Contains(text, string(a.Key)) {
		t.Errorf("it sent %s", text)
	}
	b.Key = nil
	if _, _, err := b.Answer(body, ""); err == nil {
		t.Error("a server without a key answers")
	}
}
