package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drover/cmd/drover-init/cmdline"
	"drover/pools"
	"drover/pools/boots"
)

// place returns a handler that answers with a position in the queue.
func place(n string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(pools.PlaceHeader, n)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}
}

// A node in the queue repeats its request soon, and that is no failure.
func TestFetchQueued(t *testing.T) {
	f := newFetchTest(t)
	f.server.odd = map[int]http.HandlerFunc{1: place("37"), 2: place("37"), 3: place("2"), 4: f.server.part(cutAt, false), 5: place("1")}
	var told []int
	f.Queued = func(n int, spent time.Duration) {
		told = append(told, n)
		if spent < time.Second {
			t.Errorf("place %d: %v spent, want the pause in it", n, spent)
		}
	}
	f.good(t, "", "", "", "", "bytes=1048576-", "bytes=1048576-")
	if want := []int{37, 37, 2, 1}; !slices.Equal(told, want) {
		t.Errorf("places: got %v, want %v", told, want)
	}
	if got := f.said.String(); strings.Contains(got, "503") {
		t.Errorf("the queue is told as an error: %s", got)
	}
	for i, w := range f.waits {
		if w > 2*time.Second {
			t.Errorf("wait %d is %v: the place may be lost", i, w)
		}
	}
}

// The position in the queue is on the console and in the record of the boot, and the
// wait extends the time limit of the boot.
func TestQueueing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventServer{}
		var out transcript
		start := time.Now()
		con := newConsole(&out, func() time.Duration { return time.Since(start) })
		b := &boot{con: con, rep: h.reporter(), args: cmdline.Args{Timeout: time.Minute}, step: boots.StepImage}
		ended := make(chan time.Time, 1)
		b.ends = []*time.Timer{time.AfterFunc(time.Minute, func() { ended <- time.Now() })}
		b.rep.start(plain)
		defer b.rep.stop()
		q := &queueing{boot: b}
		for _, n := range []int{37, 37, 2} {
			time.Sleep(50 * time.Second)
			q.moved(n, 50*time.Second)
		}
		synctest.Wait()
		con.close()
		if got := out.String(); strings.Count(got, "waiting for the image: place 37") != 1 || strings.Count(got, "place 2") != 1 {
			t.Errorf("console: got %s", got)
		}
		wantEvents(t, h.events(), "queued place 37")
		if q.waited != 150*time.Second {
			t.Errorf("got %v in the queue, want 150s", q.waited)
		}
		if got := (<-ended).Sub(start); got != 210*time.Second {
			t.Errorf("the boot ended after %v, want 210s: the time in the queue does not count", got)
		}
	})
}

// secured is the server of a node that is told a pin: a plain listener, and one
// with TLS.
type secured struct {
	plain, tls *httptest.Server
	pin        string

	mu  sync.Mutex
	got []string
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{}
	note := func(scheme string) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.got = append(s.got, scheme+" "+r.URL.Path)
		})
	}
	s.plain, s.tls = httptest.NewServer(note("http")), httptest.NewUnstartedServer(note("https"))
	s.tls.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that clients break off
	s.tls.StartTLS()
	t.Cleanup(s.plain.Close)
	t.Cleanup(s.tls.Close)
	sum := sha256.Sum256(s.tls.Certificate().RawSubjectPublicKeyInfo)
	s.pin = hex.EncodeToString(sum[:])
	return s
}

func (s *secured) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// node is what a node makes of its command line.
func (s *secured) node(t *testing.T, pin string) *server {
	t.Helper()
	a, err := cmdline.Parse(fmt.Sprintf("drover.url=%s drover.https=%s drover.pin=sha256:%s drover.mac=%s drover.nonce=%s drover.image=sha256:%s drover.root=/images/x/y/root.squashfs",
		s.plain.URL, s.tls.URL, pin, testMAC, testNonce, strings.Repeat("0", 64)))
	if err != nil {
		t.Fatal(err)
	}
	client := newHTTPClient(a.Pin)
	t.Cleanup(client.CloseIdleConnections)
	return &server{Base: a.URL, Secure: a.Secure, MAC: a.MAC, Nonce: a.Nonce, Client: client}
}

func TestPin(t *testing.T) {
	s := newSecured(t)
	n := s.node(t, s.pin)
	for _, what := range []string{"config", "join", "events"} {
		if _, err := n.post(t.Context(), what, struct{}{}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	base := "https /node/" + testMAC.Dashed()
	if got, want := s.requests(), []string{base + "/config", base + "/join", base + "/events"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A server with another key learns nothing, not even the nonce.
func TestPinOfAnother(t *testing.T) {
	s := newSecured(t)
	_, err := s.node(t, strings.Repeat("ab", 32)).post(t.Context(), "config", struct{}{})
	if err == nil || !strings.Contains(err.Error(), "not that of drover.pin") || !strings.Contains(err.Error(), s.pin) {
		t.Errorf("got %v, want the key named", err)
	}
	if got := s.requests(); len(got) > 0 {
		t.Errorf("the other server got %q", got)
	}
}

// The agent does as drover-init was told.
func TestPinOfAgent(t *testing.T) {
	s := newSecured(t)
	key, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	pin, err := hex.DecodeString(s.pin)
	if err != nil {
		t.Fatal(err)
	}
	post := func(pin []byte) error {
		t.Helper()
		dir := t.TempDir()
		if err := (bootState{URL: s.plain.URL, Secure: s.tls.URL, Pin: pin, MAC: testMAC, Nonce: testNonce, Key: secret}).save(dir); err != nil {
			t.Fatal(err)
		}
		state, err := loadState(dir)
		if err != nil {
			t.Fatal(err)
		}
		agent, _, err := state.server()
		if err != nil {
			t.Fatal(err)
		}
		defer agent.Client.CloseIdleConnections()
		_, err = agent.post(t.Context(), "join", struct{}{})
		return err
	}
	if err := post(pin); err != nil {
		t.Error(err)
	}
	if err := post(make([]byte, 32)); err == nil {
		t.Error("the agent takes any key")
	}
	if got, want := s.requests(), []string{"https /node/" + testMAC.Dashed() + "/join"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPinMistakes(t *testing.T) {
	good := strings.Repeat("ab", 32)
	for _, tt := range []struct{ line, want string }{
		{"drover.https=https://10.28.0.2", `drover.pin="" is not`},
		{"drover.pin=sha256:" + good, `drover.https="" is not`},
		{"drover.https=http://10.28.0.2 drover.pin=sha256:" + good, "is not by TLS"},
		{"drover.https=https://u@10.28.0.2 drover.pin=sha256:" + good, "more than a host"},
		{"drover.https=https://10.28.0.2 drover.pin=" + good, "is not sha256: and 64"},
		{"drover.https=https://10.28.0.2 drover.pin=sha256:" + good[2:], "is not sha256: and 64"},
	} {
		a, err := cmdline.Parse(tt.line)
		if err == nil || !strings.Contains(err.Error(), tt.want) || a.Secure != nil || a.Pin != nil {
			t.Errorf("%s: got %v, want %q and nothing taken", tt.line, err, tt.want)
		}
	}
}
