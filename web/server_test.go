package web_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/web"
	"drover/web/api"
	"drover/web/auth"
)

func TestHealth(t *testing.T) {
	var problems []api.Problem
	s := newHarness(t, func(s *harness) {
		s.Ready = func(context.Context) []api.Problem { return problems }
		s.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "drover_up 1\n") })
	})
	check := func(r request, code int, want string) {
		t.Helper()
		resp := s.do(r)
		if got := compact(resp.Body.String()); resp.Code != code || !strings.Contains(got, want) {
			t.Errorf("%s: got %d %s, want %d %s", r.path, resp.Code, got, code, want)
		}
	}
	check(request{path: "/healthz", anonymous: true}, 200, `{"ok":true}`)
	check(request{path: "/readyz", anonymous: true}, 200, `{"ready":true}`)
	problems = []api.Problem{{Part: "image debian-12", Problem: "there is none"}}
	check(request{path: "/readyz"}, 503, `{"ready":false,"problems":[{"part":"image debian-12","problem":"there is none"}]}`)
	check(request{path: "/readyz", anonymous: true}, 503, `{"ready":false,"problems":[{"part":"image","problem":"not ready"}],"hint":"send the API token`)
	check(request{path: "/metrics", anonymous: true}, 401, "token")
	check(request{path: "/metrics"}, 200, "drover_up 1")
	check(request{path: "/healthz", method: "POST", anonymous: true}, 405, "accepts GET")
}

func TestLoadToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.token")
	if _, isNew, err := auth.LoadToken(path); err != nil || !isNew {
		t.Fatalf("first start: got new %t, error %v", isNew, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("got mode %s, want 0600", info.Mode())
	}
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(made)); len(got) != 80 { // 64 of the secret, and the form around it
		t.Errorf("got a token of %d characters, want 80", len(got))
	}
	token, isNew, err := auth.LoadToken(path)
	if err != nil || isNew {
		t.Fatalf("second start: got new %t, error %v", isNew, err)
	}
	if token != auth.NewToken(strings.TrimSpace(string(made))) {
		t.Error("the second start has another token than the file")
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("got %d files, want the token alone", len(entries))
	}
	bad := []struct {
		name, content string
		mode          os.FileMode
		want          string
	}{
		{"others can read it", secret, 0o644, "others can read it"},
		{"its group can read it", secret, 0o640, "others can read it"},
		{"empty", "\n", 0o600, "holds 0 characters"},
		{"short", "letmein", 0o600, "holds 7 characters"},
	}
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "api.token")
			if err := os.WriteFile(path, []byte(tt.content), tt.mode); err != nil {
				t.Fatal(err)
			}
			_, _, err := auth.LoadToken(path)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "letmein") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestServe(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // for its certificate, which is of 127.0.0.1
	defer certified.Close()
	for scheme, config := range map[string]*tls.Config{"http": nil, "https": {Certificates: certified.TLS.Certificates}} {
		t.Run(scheme, func(t *testing.T) {
			s := newHarness(t, func(s *harness) { s.Addr, s.TLS = "127.0.0.1:0", config })
			l, err := s.Listen()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Serve(ctx, l) }()
			resp, err := certified.Client().Get(scheme + "://" + l.Addr().String() + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("got %s", resp.Status)
			}
			cancel()
			if err := <-done; err != nil {
				t.Errorf("got %v at the end", err)
			}
			if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
				c.Close()
				t.Error("the server answers after its end")
			}
		})
	}
}

func TestListenError(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	l, err := (&web.Server{Addr: taken.Addr().String()}).Listen()
	if err == nil {
		l.Close()
	}
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("got %v", err)
	}
}

// TestReadyzWithoutToken: a client without the token sees kinds of problems, and neither
// names nor addresses (low finding).
func TestReadyzWithoutToken(t *testing.T) {
	problems := []api.Problem{
		{Part: "cluster tenant-a", Problem: "dial tcp 10.9.8.7:6443: connection refused", Brief: "it cannot be reached", Warning: true},
		{Part: "cluster tenant-b", Problem: "dial tcp 10.9.8.8:6443: connection refused", Brief: "it cannot be reached", Warning: true},
		{Part: "chassis m1", Problem: "10.1.0.1:22: no route to host", Warning: true},
		{Part: "disk", Problem: "/var/lib/drover: no space left on device", Brief: "it does not store data"},
	}
	s := newHarness(t, func(s *harness) { s.Ready = func(context.Context) []api.Problem { return problems } })
	resp := s.do(request{path: "/readyz", anonymous: true})
	const want = `{"ready":false,"problems":[` +
		`{"part":"cluster","problem":"it cannot be reached","warning":true},` +
		`{"part":"chassis","problem":"not ready","warning":true},` +
		`{"part":"disk","problem":"it does not store data"}],` +
		`"hint":"send the API token to see names and causes"}`
	if got := compact(resp.Body.String()); resp.Code != 503 || got != want {
		t.Errorf("got %d %s, want %s", resp.Code, got, want)
	}
	for _, r := range []request{{path: "/readyz"}, {path: "/readyz", anonymous: true, header: s.session(t)}} {
		if got := s.do(r).Body.String(); !strings.Contains(got, "10.9.8.7:6443") || !strings.Contains(got, "tenant-b") || strings.Contains(got, "hint") {
			t.Errorf("with the token or a session: got %s", got)
		}
	}
}
