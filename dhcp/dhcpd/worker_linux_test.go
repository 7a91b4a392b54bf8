package dhcpd_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/dhcp/dhcpd"
	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// numbered is a packet through the relay with a number to know its answer by.
func numbered(n uint32, m pools.MAC, t dhcpv4.MessageType, mods ...dhcpv4.Modifier) []byte {
	return message(m, t, append(mods, giaddr("10.28.0.254"), func(d *dhcpv4.DHCPv4) {
		binary.BigEndian.PutUint32(d.TransactionID[:], n)
	})...).ToBytes()
}

func number(p *dhcpv4.DHCPv4) uint32 { return binary.BigEndian.Uint32(p.TransactionID[:]) }

// TestRequestsFirst lets packets gather while the only worker is busy.
func TestRequestsFirst(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	stuck := stuckFarm{asked: make(chan struct{}, 100), free: make(chan struct{})}
	s.Farm, s.Workers = stuck, 1
	r.serve(s)
	relay := r.relay()
	write(t, relay, numbered(1, web1, discover))
	<-stuck.asked
	write(t, relay, numbered(2, web1, discover))
	write(t, relay, numbered(3, web1, inform, ciaddr("10.28.5.5")))
	write(t, relay, numbered(4, web1, request, requested("10.28.36.1")))
	fixture.Eventually(t, "three requests wait", func() bool { return s.Depth() == 3 })
	close(stuck.free)
	for _, want := range []uint32{1, 3, 4, 2} {
		if got := number(read(t, relay)); got != want {
			t.Errorf("got the answer to packet %d, want %d", got, want)
		}
	}
}

// TestMadNIC has one machine ask without pause, and a calm one beside it.
func TestMadNIC(t *testing.T) {
	var logged fixture.Log
	r := newRack(t)
	s, _ := newServer()
	s.Log = slog.New(slog.NewTextHandler(&logged, nil))
	count := map[dhcp.Decision]int{}
	r.exchanges = make(chan dhcp.Exchange, 10_000)
	r.serve(s)
	relay := r.relay()
	r.confirm(relay)
	for n := range uint32(500) {
		write(t, relay, numbered(n, stray, discover))
	}
	write(t, relay, numbered(5000, web1, discover))
	for number(read(t, relay)) != 5000 { // answers to the mad one before
	}
	for range 501 {
		x := r.next()
		if x.MAC == web1 && x.Decision != dhcp.Offered {
			t.Errorf("the calm machine: got %q", x.Decision)
		}
		if x.MAC == stray {
			count[x.Decision]++
			if x.Type != "DISCOVER" {
				t.Errorf("got type %q in a dropped exchange", x.Type)
			}
		}
	}
	// Twenty at once, and what the test's own time allows.
	if got := count[dhcp.Offered]; got < 20 || got > 40 || count[dhcp.TooOften] != 500-got {
		t.Errorf("the mad machine: got %v", count)
	}
	if got := strings.Count(logged.String(), "asks too often"); got != 1 {
		t.Errorf("it was logged %d times, want once", got)
	}
}

// slowDisk makes leases durable when the test releases them, in order.
type slowDisk struct {
	*leases
	synced chan error
}

func (d slowDisk) Commit(p *resolve.Plan, a netip.Addr, now time.Time) (func() error, error) {
	_, err := d.leases.Commit(p, a, now)
	return func() error { return <-d.synced }, err
}

// TestACKsWaitForTheDisk lets no ACK pass before its lease is durable, keeps
// them in order, and has nobody else wait.
func TestACKsWaitForTheDisk(t *testing.T) {
	r := newRack(t)
	s, l := newServer()
	disk := slowDisk{l, make(chan error)}
	s.Leases, s.Workers = disk, 1
	r.serve(s)
	relay := r.relay()
	r.confirm(relay)
	machine := func(n byte) pools.MAC { return pools.MAC{0x52, 0x54, 0, 0x77, 0, n} }
	for n := range byte(4) {
		write(t, relay, numbered(uint32(n), machine(n), request, requested("10.28.72.1"+string('0'+n))))
	}
	write(t, relay, numbered(100, web1, request, requested("10.28.36.1")))
	if got := number(read(t, relay)); got != 100 {
		t.Fatalf("got answer %d first, want that to the fixed node, 100", got)
	}
	disk.synced <- nil
	disk.synced <- errDisk
	disk.synced <- nil
	disk.synced <- nil
	for _, want := range []uint32{0, 2, 3} {
		p := read(t, relay)
		if number(p) != want || p.MessageType() != dhcpv4.MessageTypeAck {
			t.Errorf("got %s %d, want ACK %d", p.MessageType(), number(p), want)
		}
	}
	for range 5 {
		x := r.next()
		failed := x.MAC == machine(1)
		if failed != errors.Is(x.Err, errDisk) || failed != (x.Decision == dhcp.NoAddress) || failed != (x.Reply == "") {
			t.Errorf("%s: got %q, reply %q, error %v", x.MAC, x.Decision, x.Reply, x.Err)
		}
	}
}

// TestReportFirst: a machine that has an OFFER is one whose boot has begun, however long the
// report takes.
func TestReportFirst(t *testing.T) {
	r := newRack(t)
	s, _ := newServer()
	s.OnExchange = func(x dhcp.Exchange) {
		time.Sleep(50 * time.Millisecond)
		r.exchanges <- x
	}
	r.serve(s)
	relay := r.relay()
	r.confirm(relay)
	write(t, relay, numbered(1, web1, discover))
	read(t, relay)
	select {
	case x := <-r.exchanges:
		if x.MAC != web1 || x.Reply != "OFFER" {
			t.Errorf("got %s of %s, want the OFFER of %s", x.Reply, x.MAC, web1)
		}
	default:
		t.Error("the OFFER was sent before its exchange was reported")
	}
}

// TestStop ends a server that many ask: whatever it had taken up is answered,
// and nothing of it stays.
func TestStop(t *testing.T) {
	r := newRack(t)
	s, l := newServer()
	disk := slowDisk{l, make(chan error)}
	s.Leases, s.Interface = disk, "srv"
	s.OnExchange = func(x dhcp.Exchange) { r.exchanges <- x }
	r.in(r.srv, s.Listen)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	relay := r.relay()
	r.confirm(relay)
	write(t, relay, numbered(1, stray, request, requested("10.28.72.10")))
	write(t, relay, numbered(2, web1, discover))
	if got := number(read(t, relay)); got != 2 {
		t.Fatalf("got answer %d, want the OFFER 2", got)
	}
	cancel()
	select {
	case err := <-ended:
		t.Fatalf("Serve ended with %v while an ACK was waiting for the disk", err)
	case <-time.After(100 * time.Millisecond):
	}
	disk.synced <- nil
	if got := read(t, relay); number(got) != 1 || got.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("got %s %d, want ACK 1", got.MessageType(), number(got))
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	again := &dhcpd.Server{Interface: "srv", Responder: dhcp.Responder{Farm: farm{}}}
	r.in(r.srv, again.Listen)
	again.Close()
}

// TestReload changes the config fifty times a second while clients come and go:
// each of them is answered, by the farm before or after a change.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drover.yaml")
	// Each client asks a few times only, so that none asks too often.
	const clients = 60
	machine := func(n uint32) pools.MAC { return pools.MAC{0x52, 0x54, 0, 1, 0, byte(n % clients)} }
	var nodes []string
	for n := range uint32(clients) {
		nodes = append(nodes, fmt.Sprintf(`{name: node-%d, macs: ["%s"], ip: 10.28.36.%d}`, n, machine(n), 10+n))
	}
	configure := func(image string) {
		text := fmt.Sprintf("server: {address: 10.28.0.2, interfaces: [srv]}\nsubnets: [{cidr: 10.28.0.0/16}]\n"+
			"pools: [{name: web, image: %s, nodes: [%s]}]\n", image, strings.Join(nodes, ", "))
		// As an editor does it: the file is never half there.
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Error(err)
		}
	}
	configure("one")
	live, err := config.NewLive(config.Source{File: path}, noNodes{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRack(t)
	s, _ := newServer()
	s.Farm = inForce{live}
	r.exchanges = make(chan dhcp.Exchange, 10_000)
	r.serve(s)
	relay := r.relay()

	ctx, cancel := context.WithCancel(t.Context())
	var reloads sync.WaitGroup
	defer reloads.Wait()
	defer cancel()
	var changes atomic.Int32
	reloads.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			configure([]string{"one", "two"}[i%2])
			if err := live.Reload(); err != nil {
				t.Error(err)
			}
			changes.Add(1)
			time.Sleep(20 * time.Millisecond)
		}
	})
	images := map[string]int{}
	for n := uint32(0); n < 300 || changes.Load() < 30; n++ {
		write(t, relay, numbered(n, machine(n), discover))
		if got, want := read(t, relay), fmt.Sprintf("10.28.36.%d", 10+n%clients); number(got) != n || got.YourIPAddr.String() != want {
			t.Fatalf("DISCOVER %d: got %s, want %s", n, got.Summary(), want)
		}
		images[r.next().Plan.Image]++
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	reloads.Wait()
	if images["one"] == 0 || images["two"] == 0 {
		t.Errorf("after %d changes, machines were answered as of %v", changes.Load(), images)
	}
}

// noNodes is a store without nodes.
type noNodes struct{ config.NodeStore }

func (noNodes) Nodes() ([]pools.PoolNode, error) { return nil, nil }

// inForce asks the farm in force.
type inForce struct{ *config.Live }

func (l inForce) Resolve(q resolve.Query) *resolve.Plan { return l.Farm().Resolve(q) }
func (l inForce) WhyNot(q resolve.Query) string         { return l.Farm().WhyNot(q) }

// TestHangingDisk has a lease store whose disk hangs, and more new leases than may
// wait for it: nodes with addresses of their own get their ACKs all the same.
func TestHangingDisk(t *testing.T) {
	r := newRack(t)
	s, l := newServer()
	disk := slowDisk{l, make(chan error)}
	s.Leases, s.Workers = disk, 1
	s.Farm = farmFunc(func(p *resolve.Plan) { // a node that is known by its port leases its own address
		if p.CatchAll {
			p.CatchAll, p.Matched = false, "circuitID"
			p.Address = netip.AddrFrom4([4]byte{10, 28, 100 + p.MAC[4], p.MAC[5]})
		}
	})
	r.exchanges = make(chan dhcp.Exchange, 2*dhcpd.MaxCommits)
	r.serve(s)
	t.Cleanup(func() { close(disk.synced) }) // before the server is stopped
	relay := r.relay()
	r.confirm(relay)
	const leases = dhcpd.MaxCommits + 100
	for n := range uint32(leases) {
		m := pools.MAC{0x52, 0x54, 0, 0x77, byte(n >> 8), byte(n)}
		write(t, relay, numbered(n, m, request, requested(fmt.Sprintf("10.28.%d.%d", 100+n>>8, n&0xff))))
		if n%100 == 99 { // the socket's buffer has no room for more while the server waits for a processor
			last := pools.MAC{0x52, 0x54, 0, 0x78, byte(n >> 8), byte(n)} // it has no lease, and waits for no disk
			write(t, relay, numbered(3*leases+n, last, discover))
			for r.next().MAC != last {
			}
		}
		if n%500 == 499 {
			write(t, relay, numbered(leases+n, web1, request, requested("10.28.36.1")))
			if got := read(t, relay); number(got) != leases+n || got.MessageType() != dhcpv4.MessageTypeAck {
				t.Fatalf("got %s %d, want the ACK of the declared node, %d", got.MessageType(), number(got), leases+n)
			}
		}
	}
	dropped := 0
	for dropped == 0 {
		if x := r.next(); x.MAC != web1 && x.Decision == dhcp.QueueFull {
			dropped++
		}
	}
	write(t, relay, numbered(2*leases, web1b, request, requested("10.28.36.1")))
	if got := number(read(t, relay)); got != 2*leases {
		t.Errorf("got answer %d, want that to the declared node, %d", got, 2*leases)
	}
}
