package externalhost_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/controlplane"
	"drover/e2e/fixture"
	"drover/e2e/netns"
)

// testRollingRestart replaces the pods of a Headless Service as a Deployment does, while
// programs on the host connect to the port that leads there: none of their connections is
// refused or without an answer.
func testRollingRestart(t *testing.T, p *controlplane.Cluster, first netip.Addr) {
	t.Helper()
	before := newGreeter(t, first, 0)
	setEndpoints(t, p, before.endpoint(true))
	fixture.Retry(t, "the port leads to the first pod", func() error {
		name, err := greet(t.Context(), 3*time.Second)
		if err == nil && name != before.name {
			err = fmt.Errorf("%q", name)
		}
		return err
	})
	answers := make(chan string, 100)
	var connected sync.RWMutex // held while one is open: a pod lets its connections end
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			for ctx.Err() == nil {
				connected.RLock()
				name, err := greet(ctx, time.Minute)
				connected.RUnlock()
				if err != nil {
					if ctx.Err() != nil {
						return
					}
					t.Errorf("a connection was refused, or had no answer: %v", err)
					return
				}
				select {
				case answers <- name:
				default:
				}
			}
		})
	}
	defer func() {
		cancel()
		clients.Wait()
		apply(t, p, "-", objects(first.String())) // as it was
	}()
	for i := 1; i < 4; i++ {
		next := newGreeter(t, first, i)
		setEndpoints(t, p, next.endpoint(true), before.endpoint(false))
		fixture.Eventually(t, next.name+" answers", func() bool {
			select {
			case name := <-answers:
				return name == next.name
			default:
				return false
			}
		})
		connected.Lock()
		_ = before.Close()
		connected.Unlock()
		setEndpoints(t, p, next.endpoint(true))
		before = next
	}
}

// greet connects to the port of the host, and returns the name of the pod that answers.
func greet(ctx context.Context, limit time.Duration) (string, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := netns.Namespace("legacy1").Dial(limited, "tcp", "127.0.0.1:18080")
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(limit))
	buf := make([]byte, 100)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

// greeter is a pod that says its name to each connection.
type greeter struct {
	net.Listener
	address, name string
}

// newGreeter starts a pod at one of the next addresses after the first.
func newGreeter(t *testing.T, first netip.Addr, i int) *greeter {
	t.Helper()
	a := first
	for range i + 1 {
		a = a.Next()
	}
	g := &greeter{address: a.String(), name: fmt.Sprintf("pod%d", i)}
	netns.Namespace("pod").In(t, func() (err error) {
		netns.Namespace("pod").IP(t, "address", "add", g.address+"/24", "dev", "eth0")
		g.Listener, err = net.Listen("tcp", g.address+":9090")
		return err
	})
	t.Cleanup(func() { _ = g.Close() })
	go func() {
		for {
			c, err := g.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(g.name)) // the client says if it has no answer
			_ = c.Close()
		}
	}()
	return g
}

func (g *greeter) endpoint(ready bool) string {
	return fmt.Sprintf("{addresses: [%q], conditions: {ready: %v, serving: true, terminating: %v}}", g.address, ready, !ready)
}

// setEndpoints sets the pods of the Service headless, at port 9090.
func setEndpoints(t *testing.T, p *controlplane.Cluster, endpoints ...string) {
	t.Helper()
	apply(t, p, "-", `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: headless-1, namespace: default, labels: {kubernetes.io/service-name: headless}}, addressType: IPv4,
  ports: [{name: "", port: 9090, protocol: TCP}], endpoints: [`+strings.Join(endpoints, ", ")+"]}")
}
