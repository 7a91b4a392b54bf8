package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	main "drover/e2e/bench/boot"
)

// TestPuller: all of many connections fetch the file again and again.
func TestPuller(t *testing.T) {
	const size = 3 << 20
	var asked [4]atomic.Int64
	content := make([]byte, size)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for n := range asked {
			if strings.HasPrefix(r.RemoteAddr, loopback(n).String()+":") && r.URL.Path == "/file" {
				asked[n].Add(1)
			}
		}
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = w.Write(content)
	}))
	defer s.Close()
	var began, ended bool
	p := pullerOf(s, "/file", size, len(asked))
	main.Watch(p, func() { began = true }, func() { ended = true })
	enough := func() bool { // however slow this host is
		for n := range asked {
			if asked[n].Load() < 3 {
				return false
			}
		}
		return true
	}
	for tries := 0; !enough(); tries++ {
		if tries == 100 {
			t.Fatalf("asked %v times, want each thrice", &asked)
		}
		if err := main.Pull(p); err != nil {
			t.Fatal(err)
		}
	}
	if !began || !ended {
		t.Errorf("told of the begin: %v, of the end: %v", began, ended)
	}
	if main.Pulled(p) == 0 {
		t.Error("nothing was counted")
	}
}

func TestPullerTells(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"a refusal", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }, "503"},
		{"another file", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("short")) }, "5 bytes to send, want 1000"},
		{"a cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(make([]byte, 900))
			panic(http.ErrAbortHandler)
		}, "ended"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.handler)
			defer s.Close()
			p := pullerOf(s, "/file", 1000, 1)
			main.Patience(p, time.Minute)
			if err := main.Pull(p); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func loopback(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 9, byte(n + 1)}) }

func pullerOf(s *httptest.Server, path string, size int64, conns int) *main.Puller {
	var from []netip.Addr
	for n := range conns {
		from = append(from, loopback(n))
	}
	return main.NewPuller(netip.MustParseAddrPort(s.Listener.Addr().String()), path, size, from)
}
