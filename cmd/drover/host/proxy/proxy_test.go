package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"drover/cmd/drover/host/proxy"
	"drover/e2e/fixture"
	"drover/kube/backends"
)

// pod answers each line with its name, until it is closed.
type pod struct {
	net.Listener
	name string
}

func newPod(t *testing.T, name string) *pod {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{l, name}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *pod) serve(c net.Conn) {
	defer c.Close()
	for s := bufio.NewScanner(c); s.Scan(); {
		if _, err := fmt.Fprintf(c, "%s %s\n", p.name, s.Text()); err != nil {
			return
		}
	}
	_, _ = io.WriteString(c, "end\n") // the client may be gone
}

func (p *pod) at() netip.AddrPort { return p.Addr().(*net.TCPAddr).AddrPort() }

func ready(pods ...*pod) (s backends.State) {
	for _, p := range pods {
		s.Backends = append(s.Backends, backends.Backend{Address: p.at(), Ready: true})
	}
	return s
}

// serve runs a proxy, and returns its address and a function that ends it, and waits.
func serve(t *testing.T, p *proxy.Proxy) (at string, end func()) {
	t.Helper()
	p.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := p.Serve(ctx, l); !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v", err)
		}
	})
	end = func() {
		cancel()
		serving.Wait()
	}
	t.Cleanup(end)
	return l.Addr().String(), end
}

// dial returns a connection, which is closed before the proxy ends.
func dial(t *testing.T, at string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", at, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c.(*net.TCPConn)
}

// ask returns the answer to a line on a connection.
func ask(c net.Conn, line string) (string, error) {
	if _, err := fmt.Fprintln(c, line); err != nil {
		return "", err
	}
	buf := make([]byte, 100)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

func wantAnswer(t *testing.T, c net.Conn, line, want string) {
	t.Helper()
	if got, err := ask(c, line); got != want || err != nil {
		t.Errorf("%q: got %q, %v, want %q", line, got, err, want)
	}
}

// clients connect without a pause, until the function that they return is called. No
// connection may be refused or without an answer. They hold the lock while they have one: a
// pod that ends while its kernel has a connection that it has not accepted resets that.
func clients(t *testing.T, at string, connected sync.Locker) (answers chan string, stop func()) {
	answers = make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				connected.Lock()
				got, err := askOnce(at)
				connected.Unlock()
				if err != nil {
					t.Errorf("refused, or no answer: %v", err)
					return
				}
				select {
				case answers <- got:
				default:
				}
			}
		})
	}
	return answers, func() {
		cancel()
		asking.Wait()
	}
}

func askOnce(at string) (string, error) {
	c, err := net.DialTimeout("tcp", at, time.Minute)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return ask(c, "hello")
}

// TestRollingRestart replaces all pods several times, under connections. Pods may refuse
// before their cluster says that they end.
func TestRollingRestart(t *testing.T) {
	p := &proxy.Proxy{Patience: time.Minute}
	at, _ := serve(t, p)
	old := newPod(t, "pod0")
	p.Set(ready(old))
	var connected sync.RWMutex
	answers, stop := clients(t, at, connected.RLocker())
	end := func(p *pod) {
		connected.Lock()
		defer connected.Unlock()
		_ = p.Close()
	}
	await := func(name string) {
		t.Helper()
		fixture.Eventually(t, "an answer of "+name, func() bool {
			for {
				select {
				case got := <-answers:
					if got == name+" hello\n" {
						return true
					}
				default:
					return false
				}
			}
		})
	}
	await("pod0")
	for i := 1; i <= 5; i++ {
		next := newPod(t, fmt.Sprintf("pod%d", i))
		switch i % 3 {
		case 0: // the cluster knows before the pod ends
			ending := ready(next)
			ending.Backends = append(ending.Backends, backends.Backend{Address: old.at()})
			p.Set(ending)
			await(next.name)
			end(old)
		case 1: // the pod ends first
			p.Set(ready(old, next))
			end(old)
			await(next.name)
		case 2: // there is no pod for a time
			end(old)
			p.Set(backends.State{Problem: "no ready pod"})
		}
		p.Set(ready(next))
		await(next.name)
		old = next
	}
	stop()
}

// TestTerminating has pods that end get connections only while none is ready.
func TestTerminating(t *testing.T) {
	p := &proxy.Proxy{}
	at, _ := serve(t, p)
	a, b := newPod(t, "a"), newPod(t, "b")
	p.Set(backends.State{Backends: []backends.Backend{{Address: a.at()}, {Address: b.at(), Ready: true}}})
	for range 10 {
		wantAnswer(t, dial(t, at), "x", "b x\n")
	}
	p.Set(backends.State{Backends: []backends.Backend{{Address: a.at()}}})
	wantAnswer(t, dial(t, at), "x", "a x\n")
}

// TestHalfClose ends one direction, and reads the rest of the other.
func TestHalfClose(t *testing.T) {
	p := &proxy.Proxy{}
	at, _ := serve(t, p)
	p.Set(ready(newPod(t, "a")))
	c := dial(t, at)
	wantAnswer(t, c, "x", "a x\n")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c); string(rest) != "end\n" || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
}

// TestSpread has the pods share connections.
func TestSpread(t *testing.T) {
	p := &proxy.Proxy{}
	at, _ := serve(t, p)
	p.Set(ready(newPod(t, "a"), newPod(t, "b")))
	count := map[string]int{}
	for range 20 {
		got, err := ask(dial(t, at), "x")
		if err != nil {
			t.Fatal(err)
		}
		count[got]++
	}
	if count["a x\n"] != 10 || count["b x\n"] != 10 {
		t.Errorf("got %v, want ten connections of each", count)
	}
}

// TestNoPod gives up waiting for a pod with a reset.
func TestNoPod(t *testing.T) {
	p := &proxy.Proxy{Patience: time.Second}
	at, _ := serve(t, p)
	p.Set(backends.State{Problem: "no ready pod"})
	if got, err := ask(dial(t, at), "x"); err == nil {
		t.Errorf("got %q, want an error", got)
	}
}

// TestLimit has a connection beyond the limit wait until another ends.
func TestLimit(t *testing.T) {
	p := &proxy.Proxy{MaxConnections: 2, Patience: time.Minute}
	at, _ := serve(t, p)
	p.Set(ready(newPod(t, "a")))
	first, second, third := dial(t, at), dial(t, at), dial(t, at)
	wantAnswer(t, first, "x", "a x\n")
	wantAnswer(t, second, "x", "a x\n")
	answered := make(chan error, 1)
	go func() {
		_, err := ask(third, "x")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("the third connection got an answer beside two others: %v", err)
	case <-time.After(200 * time.Millisecond): // a proxy without a limit may be slower, but not fail
	}
	_ = first.Close()
	if err := <-answered; err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

// TestDrain ends the proxy: connections may go on, new ones are refused.
func TestDrain(t *testing.T) {
	p := &proxy.Proxy{Drain: time.Minute}
	at, end := serve(t, p)
	p.Set(ready(newPod(t, "a")))
	c := dial(t, at)
	wantAnswer(t, c, "x", "a x\n")
	ended := make(chan struct{})
	go func() {
		end()
		close(ended)
	}()
	fixture.Eventually(t, "new connections are refused", func() bool {
		n, err := net.Dial("tcp", at)
		if err == nil {
			_ = n.Close()
		}
		return err != nil
	})
	wantAnswer(t, c, "y", "a y\n")
	_ = c.Close()
	<-ended
}

// TestDrainEnds closes connections that do not end.
func TestDrainEnds(t *testing.T) {
	p := &proxy.Proxy{Drain: time.Second}
	at, end := serve(t, p)
	p.Set(ready(newPod(t, "a")))
	c := dial(t, at)
	wantAnswer(t, c, "x", "a x\n")
	end()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open after the end")
	}
}
