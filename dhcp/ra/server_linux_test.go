package ra_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	raw "github.com/mdlayher/packet"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"drover/dhcp/ra"
	"drover/e2e/fixture"
	"drover/e2e/netns"
)

// wire is a network of two hosts: the server's with interface srv, and a machine's with
// interface cli.
type wire struct {
	srv, cli netns.Namespace
	log      fixture.Log

	mu   sync.Mutex
	seen map[ra.Packet]int
}

// newNet makes the namespaces. Both interfaces are up.
func newNet(t *testing.T, programs ...string) *wire {
	t.Helper()
	netns.Need(t, programs...)
	id := fmt.Sprintf("drvra%d%s", os.Getpid(), strings.ReplaceAll(strings.TrimPrefix(t.Name(), "Test"), "/", "-"))
	w := &wire{srv: netns.NewNamespace(t, id+"s"), cli: netns.NewNamespace(t, id+"c"), seen: map[ra.Packet]int{}}
	w.srv.Link(t, "srv", w.cli, "cli")
	w.srv.IP(t, "link", "set", "srv", "address", server.mac.String(), "up")
	w.cli.IP(t, "link", "set", "cli", "address", ipxe.mac.String())
	return w
}

// sysctl sets a value below net.ipv6.conf.
func sysctl(t *testing.T, n netns.Namespace, assignment string) {
	t.Helper()
	if out, err := n.Command("sysctl", "-w", "net.ipv6.conf."+assignment).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// serve starts a server on an interface of the server's host, and calls functions on its
// thread before. It ends with the test.
func (w *wire) serve(t *testing.T, device string, before ...func() error) *ra.Server {
	t.Helper()
	s := &ra.Server{
		Interface: device,
		Log:       slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("server", device),
		OnPacket: func(p ra.Packet) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen[p]++
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- w.srv.Do(func() error {
			for _, f := range before {
				if err := f(); err != nil {
					return err
				}
			}
			return s.Serve(ctx)
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", w.log.String())
		}
	})
	return s
}

// saw is how many solicitations had a result.
func (w *wire) saw(r ra.Result) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[ra.Packet{Type: "solicitation", Result: r}]
}

// packets returns what was seen, for messages.
func (w *wire) packets() map[ra.Packet]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.seen)
}

// machine sends frames and hears advertisements on an interface of the machine's host.
type machine struct {
	*raw.Conn
	answers chan []byte
}

func (w *wire) machine(t *testing.T, device string) *machine {
	t.Helper()
	m := &machine{answers: make(chan []byte, 10_000)}
	w.cli.In(t, func() error {
		ifi, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		m.Conn, err = raw.Listen(ifi, raw.Raw, 0x86dd, nil)
		return err
	})
	t.Cleanup(func() { m.Close() })
	go func() {
		for {
			b := make([]byte, 2000)
			n, _, err := m.ReadFrom(b)
			if err != nil {
				return
			}
			if n >= 70 && b[20] == 58 && b[54] == 134 {
				m.answers <- b[:n]
			}
		}
	}()
	return m
}

func (m *machine) send(t *testing.T, f []byte) {
	t.Helper()
	if _, err := m.WriteTo(f, &raw.Addr{HardwareAddr: f[:6]}); err != nil {
		t.Fatal(err)
	}
}

// drain forgets the answers so far.
func (m *machine) drain() {
	for len(m.answers) > 0 {
		<-m.answers
	}
}

// boot solicits as iPXE until there is an answer, and returns that.
func (m *machine) boot(t *testing.T) (answer []byte) {
	t.Helper()
	fixture.Eventually(t, "a router advertisement", func() bool {
		m.send(t, solicit(t, ipxe))
		select {
		case answer = <-m.answers:
			return true
		default:
			return false
		}
	})
	return answer
}

// A Linux host that takes advertisements solicits and gets the answer. It gains no route
// and no address.
func TestLinuxHost(t *testing.T) {
	for _, disabled := range []string{"0", "1"} {
		t.Run("disable_ipv6="+disabled, func(t *testing.T) {
			w := newNet(t, "sysctl")
			// Some hosts have IPv6 switched off on the interface that drover serves.
			sysctl(t, w.srv, "srv.disable_ipv6="+disabled)
			s := w.serve(t, "srv")
			for _, set := range []string{"cli.accept_ra=1", "cli.autoconf=1", "cli.accept_ra_defrtr=1", "cli.router_solicitation_interval=4"} {
				sysctl(t, w.cli, set)
			}
			w.cli.IP(t, "link", "set", "cli", "up")
			fixture.Eventually(t, "the host has its answer", func() bool {
				return w.counter(t, "Icmp6InRouterAdvertisements") > 0
			})
			if n := s.Routers(); n != 0 {
				t.Errorf("%d other routers are known", n)
			}
			for _, query := range [][]string{{"-6", "route", "show", "table", "all"}, {"-6", "addr", "show", "dev", "cli", "scope", "global"}} {
				out, err := w.cli.Command("ip", query...).CombinedOutput()
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(out)) {
					if regexp.MustCompile(`default|proto ra|inet6|via`).MatchString(line) {
						t.Errorf("ip %s has gained %s", query, line)
					}
				}
			}
		})
	}
}

// counter returns a value of the machine's interface.
func (w *wire) counter(t *testing.T, name string) (n int) {
	t.Helper()
	out, err := w.cli.Command("cat", "/proc/net/dev_snmp6/cli").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			fmt.Sscan(f[1], &n)
		}
	}
	return n
}

// The interface may come later, go down, get another MAC or go away.
func TestInterfaceChanges(t *testing.T) {
	w := newNet(t)
	w.srv.IP(t, "link", "del", "srv")
	w.serve(t, "srv")
	fixture.Eventually(t, "the server waits for its interface", func() bool { return strings.Contains(w.log.String(), "no such network interface") })

	for _, how := range []string{"comes", "comes again"} {
		w.srv.Link(t, "srv", w.cli, "cli")
		w.cli.IP(t, "link", "set", "cli", "up")
		w.srv.IP(t, "link", "set", "srv", "address", server.mac.String(), "up")
		m := w.machine(t, "cli")
		if from := [6]byte(m.boot(t)[6:12]); from != server.mac {
			t.Errorf("it %s: answered from %x", how, from)
		}

		w.srv.IP(t, "link", "set", "srv", "down")
		fixture.Eventually(t, "the server sees that it is down", func() bool { return strings.Contains(w.log.String(), "interface is down") })
		w.srv.IP(t, "link", "set", "srv", "address", "02:00:00:00:00:77", "up")
		fixture.Eventually(t, "the answer has the new MAC and its address", func() bool {
			f := m.boot(t)
			return f[11] == 0x77 && f[14+23] == 0x77
		})
		if how == "comes" {
			w.srv.IP(t, "link", "del", "srv")
			fixture.Eventually(t, "the server sees that it is gone", func() bool {
				return strings.Count(w.log.String(), "no such network interface") > 1
			})
		}
	}
}

// Without CAP_NET_RAW the log says so once, and nothing fails.
func TestNoCapability(t *testing.T) {
	w := newNet(t)
	w.cli.IP(t, "link", "set", "cli", "up")
	w.serve(t, "srv", func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData // none
		return unix.Capset(&header, &data[0])
	})
	fixture.Eventually(t, "the log has the reason", func() bool { return strings.Contains(w.log.String(), "CAP_NET_RAW") })
}

// tag puts a frame into a VLAN.
func tag(f []byte, id byte) []byte {
	return slices.Concat(f[:12], []byte{0x81, 0, 0, id}, f[12:])
}

// VLANs are wires of their own, and a server does not hear them though their frames come
// through its card. Tag 0 is only a priority.
func TestTagged(t *testing.T) {
	w := newNet(t)
	w.cli.IP(t, "link", "set", "cli", "up")
	w.serve(t, "srv")
	m := w.machine(t, "cli")
	m.boot(t)
	m.drain()
	m.send(t, tag(solicit(t, host{[6]byte{2, 0, 0, 0, 0, 7}, ipxe.addr}), 7))
	m.send(t, tag(solicit(t, host{[6]byte{2, 0, 0, 0, 0, 8}, ipxe.addr}), 0))
	fixture.Eventually(t, "tag 0 is answered", func() bool {
		select {
		case f := <-m.answers:
			if f[5] == 7 {
				t.Errorf("the VLAN got %x", f)
			}
			return f[5] == 8
		default:
			return false
		}
	})
}

// A VLAN sub-interface and a bond are interfaces like others. Of two servers, on the card
// and on the VLAN, one takes a solicitation.
func TestVLANAndBond(t *testing.T) {
	netns.NeedLinks(t, "bond", "vlan")
	w := newNet(t)
	w.cli.IP(t, "link", "set", "cli", "up")
	w.cli.IP(t, "link", "add", "link", "cli", "name", "cli.7", "type", "vlan", "id", "7")
	w.cli.IP(t, "link", "set", "cli.7", "up")
	w.srv.IP(t, "link", "set", "srv", "down")
	w.srv.IP(t, "link", "add", "bond0", "type", "bond", "mode", "active-backup", "miimon", "100")
	w.srv.IP(t, "link", "set", "srv", "master", "bond0")
	w.srv.IP(t, "link", "set", "bond0", "up")
	w.srv.IP(t, "link", "add", "link", "bond0", "name", "vlan7", "type", "vlan", "id", "7")
	w.srv.IP(t, "link", "set", "vlan7", "up")
	plain, tagged := w.machine(t, "cli"), w.machine(t, "cli.7")
	w.serve(t, "bond0")
	plain.boot(t)
	w.serve(t, "vlan7")
	tagged.boot(t)
	plain.drain()
	tagged.drain()
	for last, m := range map[byte]*machine{0x50: tagged, 0x60: plain} { // late answers to the boots are ipxe's
		answers := 0
		for n := range byte(4) {
			m.send(t, solicit(t, host{[6]byte{2, 0, 0, 0, 0, last + n}, ipxe.addr}))
		}
		for f := range m.answers {
			if f[5]&0xf0 == last {
				answers++
			}
			if f[5] == last+3 {
				break
			}
		}
		if answers != 4 {
			t.Errorf("four solicitations got %d answers", answers)
		}
	}
}

// Beside radvd, on another host or on the server's own, the server is silent, and it
// answers once radvd has said goodbye.
func TestRadvd(t *testing.T) {
	for _, where := range []string{"another host", "this host"} {
		t.Run(where, func(t *testing.T) {
			w := newNet(t, "radvd")
			w.cli.IP(t, "link", "set", "cli", "up")
			host, device := w.cli, "cli"
			if where == "this host" {
				host, device = w.srv, "srv"
			}
			s := w.serve(t, "srv")
			m := w.machine(t, "cli")
			m.boot(t)
			stop := radvd(t, host, device)
			fixture.Eventually(t, "the router is known", func() bool { return s.Routers() == 1 })
			before := w.saw(ra.Answered)
			m.send(t, solicit(t, ipxe))
			fixture.Eventually(t, "the solicitation is left to it", func() bool { return w.saw(ra.OtherRouter) > 0 })
			if n := w.saw(ra.Answered); n != before {
				t.Errorf("%d solicitations were answered beside it", n-before)
			}
			stop()
			fixture.Eventually(t, "the router is gone", func() bool { return s.Routers() == 0 })
			m.drain()
			m.boot(t)
			if w.saw(ra.Answered) == before {
				t.Error("nothing was answered after it")
			}
		})
	}
}

// radvd runs it, and returns a function that ends it.
func radvd(t *testing.T, n netns.Namespace, device string) (stop func()) {
	t.Helper()
	sysctl(t, n, "all.forwarding=1")
	dir := t.TempDir()
	conf := fixture.Tree(t, map[string]string{"radvd.conf": `interface ` + device + ` {
	AdvSendAdvert on; AdvDefaultLifetime 1800; MinRtrAdvInterval 3; MaxRtrAdvInterval 4;
	prefix 2001:db8:5::/64 {};
};
`}) + "/radvd.conf"
	cmd := n.Command("radvd", "--nodaemon", "--config", conf, "--pidfile", dir+"/pid", "--logmethod", "stderr")
	var said fixture.Log
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it says goodbye
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("radvd said:\n%s", said.String())
		}
	})
	return stop
}

// A flood of forged solicitations and advertisements: the limits hold, and afterwards a
// machine is answered.
func TestFlood(t *testing.T) {
	w := newNet(t)
	w.cli.IP(t, "link", "set", "cli", "up")
	s := w.serve(t, "srv")
	m := w.machine(t, "cli")
	m.boot(t)
	for n := range fixture.Attack(20_000, 200_000) {
		forged := host{[6]byte{2, 1, 0, byte(n >> 16), byte(n >> 8), byte(n)}, ipxe.addr}
		m.send(t, solicit(t, forged))
		if n%100 == 0 { // not valid: it came through a router
			m.send(t, change(advertise(t, forged, 0, 1800), 21, 64))
		}
	}
	fixture.Eventually(t, "the flood has passed", func() bool {
		m.send(t, packet(t, ipxe, everyRouter, ipv6.ICMPTypeRouterSolicitation, make([]byte, 3))) // a mark
		return w.saw(ra.Invalid) > 0
	})
	m.drain()
	m.boot(t)
	if s.Routers() != 0 {
		t.Errorf("%d routers are known", s.Routers())
	}
	fixture.Eventually(t, "what the kernel dropped is counted", func() bool { return s.Dropped() > 0 })
	t.Logf("got %v, and the kernel dropped %d", w.packets(), s.Dropped())
}
