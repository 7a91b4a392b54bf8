package network_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"drover/e2e/fixture"
	"drover/server/network"
)

var quiet = slog.New(slog.DiscardHandler)

// free returns a port that no socket has.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// serve writes to each connection the address that it came to.
func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, c.LocalAddr().String()) // the client may have gone
		_ = c.Close()
	}
}

// answer returns what a server at an address writes; empty if none accepts.
func answer(address string) string {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return ""
	}
	defer c.Close()
	text, _ := io.ReadAll(c) // what was read before an error counts
	return string(text)
}

// addrs returns addresses; none are another thing than nil, which is all.
func addrs(list ...string) []netip.Addr {
	all := []netip.Addr{}
	for _, text := range list {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// TestBind: only the addresses that are bound now accept, whatever was bound before. One that the
// host does not have is left out, and keeps none of the others.
func TestBind(t *testing.T) {
	port := free(t)
	l := network.NewListener(port, nil, quiet)
	defer l.Close()
	go serve(l)
	for _, bound := range [][]string{{"127.0.0.1"}, {"127.0.0.1", "127.0.0.2"}, {"127.0.0.2", "198.51.100.7", "2001:db8::7", "127.0.0.3"}, {}, {"127.0.0.1"}} {
		if err := l.Bind(addrs(bound...)); err != nil {
			t.Errorf("%q: %v", bound, err)
		}
		for _, host := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
			at, want := host+":"+port, ""
			for _, b := range bound {
				if b == host {
					want = at
				}
			}
			if got := answer(at); got != want {
				t.Errorf("bound to %q: %s answers %q, want %q", bound, at, got, want)
			}
		}
	}
	if err := l.Bind(nil); err != nil || answer("127.0.0.9:"+port) == "" {
		t.Errorf("bound to all addresses: %v, and 127.0.0.9 does not answer", err)
	}
	if l.Addr().(*net.TCPAddr).Port == 0 {
		t.Errorf("address %v", l.Addr())
	}
}

// TestInUse: a port that another program has is an error with a remedy, and keeps none of the
// other addresses.
func TestInUse(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	port := strconv.Itoa(other.Addr().(*net.TCPAddr).Port)
	l := network.NewListener(port, nil, quiet)
	defer l.Close()
	go serve(l)
	err = l.Bind(addrs("127.0.0.1", "127.0.0.2"))
	if !errors.Is(err, syscall.EADDRINUSE) || answer("127.0.0.2:"+port) == "" {
		t.Errorf("got error %v; 127.0.0.2 answers %q", err, answer("127.0.0.2:"+port))
	}
	fixture.WantText(t, "the error", network.InUse(err).Error(), "ss -lnp shows it")
	if other := errors.New("x"); network.InUse(other) != other || network.InUse(nil) != nil {
		t.Error("other errors are changed")
	}
}

// TestHandOver: connections that come while one server ends and the next one begins are served by
// the next one, in this process and in another.
func TestHandOver(t *testing.T) {
	port := free(t)
	at := "127.0.0.1:" + port
	l := network.NewListener(port, nil, quiet)
	if err := l.Bind(addrs("127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	first := l.Server()
	ended := make(chan struct{})
	go func() { serve(first); close(ended) }()
	if answer(at) != at {
		t.Fatal("the first server does not answer")
	}
	l.Release()
	waiting, err := net.Dial("tcp", at) // nobody accepts it now
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	if err := l.Bind(addrs("127.0.0.2")); err != nil {
		t.Error(err)
	}
	files, err := l.Files()
	if err != nil || len(files) != 1 {
		t.Fatalf("%d sockets, %v, want the one that was released", len(files), err)
	}
	var sockets []net.Listener
	for range 2 { // stored twice
		s, err := net.FileListener(files[0])
		if err != nil {
			t.Fatal(err)
		}
		sockets = append(sockets, s)
	}
	if err := errors.Join(files[0].Close(), l.Close()); err != nil {
		t.Error(err)
	}
	inherited := network.Inherit(sockets)
	next := network.NewListener(port, inherited, quiet)
	defer next.Close()
	if err := next.Bind(addrs("127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	inherited.Close()
	go serve(next)
	if text, err := io.ReadAll(waiting); err != nil || string(text) != at {
		t.Errorf("the connection in between got %q, %v", text, err)
	}
	if answer(at) != at {
		t.Error("the next server does not answer")
	}
}

// TestInherited: a socket of before is used at its own address alone, and never in the way of
// another address that the config has now.
func TestInherited(t *testing.T) {
	for _, tt := range []struct {
		before, now string
		same        bool // the socket
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"", "", true},
		{"::1", "::1", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"127.0.0.1", "", false},
		{"0.0.0.0", "", true},
		{"", "0.0.0.0", true},
		{"", "::", true},
		{"", "127.0.0.1", false},
		{"0.0.0.0", "0.0.0.0", true},
	} {
		l, err := net.Listen("tcp", net.JoinHostPort(tt.before, "0"))
		if err != nil {
			if tt.before == "::1" {
				continue // a host without IPv6
			}
			t.Fatal(err)
		}
		inherited := network.Inherit([]net.Listener{l})
		address := net.JoinHostPort(tt.now, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		got, err := inherited.Listen(address)
		if err != nil {
			t.Errorf("%q, then %q: %v", tt.before, tt.now, err)
			continue
		}
		if (got == l) != tt.same {
			t.Errorf("%q, then %q: the socket is the same: %t, want %t", tt.before, tt.now, got == l, tt.same)
		}
		if _, err := inherited.Listen(address); err == nil {
			t.Errorf("%q: the socket was given twice", tt.now)
		}
		inherited.Close()
		if err := got.Close(); err != nil {
			t.Errorf("%q: %v", tt.now, err)
		}
	}
	var none *network.Inherited
	l, err := none.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := none.Listen(l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("another program's port: %v", err)
	}
}

// part is a [network.Part] that the test drives.
type part struct {
	listen  func() error
	changed atomic.Bool
	serves  chan string
}

func (p *part) Listen() error { return p.listen() }
func (p *part) Changed() bool { return p.changed.Load() }

func (p *part) Serve(ctx context.Context) error {
	p.serves <- "begins"
	<-ctx.Done()
	p.serves <- "ends"
	return nil
}

// TestFollow: a part waits for its interface, begins again with another one, and is left alone when
// something else has changed.
func TestFollow(t *testing.T) {
	log := new(fixture.Log)
	n := &network.Interfaces{Log: slog.New(slog.NewTextHandler(log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	changes, missing := make(chan struct{}), errors.New("no such network interface")
	listened := make(chan struct{}, 10)
	var ready atomic.Bool
	p := &part{serves: make(chan string)}
	p.listen = func() error {
		if ready.Load() {
			return nil
		}
		listened <- struct{}{}
		return missing
	}
	n.Report("eth1", missing)
	followed := make(chan error, 1)
	go func() { followed <- n.Follow(ctx, "eth1", p, changes, false) }()
	changes <- struct{}{} // still missing
	<-listened
	changes <- struct{}{} // the second one shows that the first was handled
	<-listened
	if got := n.Missing()["eth1"]; !errors.Is(got, missing) {
		t.Errorf("missing: %v, want %v", got, missing)
	}
	ready.Store(true)
	changes <- struct{}{}
	if got := <-p.serves; got != "begins" || len(n.Missing()) > 0 {
		t.Errorf("it %s; missing %v", got, n.Missing())
	}
	changes <- struct{}{} // of another interface
	changes <- struct{}{}
	p.changed.Store(true)
	changes <- struct{}{}
	if got := <-p.serves; got != "ends" {
		t.Errorf("it %s when its interface has changed", got)
	}
	if got := <-p.serves; got != "begins" {
		t.Errorf("it %s after that", got)
	}
	cancel()
	if got := <-p.serves; got != "ends" {
		t.Errorf("it %s at the end", got)
	}
	if err := <-followed; err != nil {
		t.Error(err)
	}
	if got := strings.Count(log.String(), "interface not served until it is ready"); got != 1 {
		t.Errorf("%d warnings, want one:\n%s", got, log)
	}
}

// TestNames: which listeners have the names of this host.
func TestNames(t *testing.T) {
	for listener, want := range map[string]bool{":443": true, "0.0.0.0:443": true, "[::]:443": true, "10.28.0.2:443": false, "example.org:443": false, "443": false, "": false} {
		if got := network.Names(listener); (len(got) > 0) != want {
			t.Errorf("%q: got %q, want some: %t", listener, got, want)
		}
	}
	for _, name := range network.Names(":443") {
		if a, err := netip.ParseAddr(name); err == nil && !a.IsGlobalUnicast() {
			t.Errorf("%s is in no URL", name)
		}
	}
}
