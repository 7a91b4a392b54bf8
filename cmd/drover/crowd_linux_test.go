package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/e2e/netns"
	"drover/pools"
)

// crowd is a relay agent with many clients, and a `drover serve` process, in two
// namespaces. The state directory is kept when the process ends.
type crowd struct {
	t      testing.TB
	dir    string
	net    netns.Namespace // the server's
	server *exec.Cmd
	relay  *net.UDPConn
}

var (
	crowdServer = netip.MustParseAddrPort("10.28.0.2:67")
	crowdRelay  = netip.MustParseAddrPort("10.28.0.254:67")
)

// newCrowd makes the namespaces, and a config with a catch-all pool of these addresses.
func newCrowd(t testing.TB, addresses string) *crowd {
	t.Helper()
	netns.Need(t)
	id := fmt.Sprintf("drvcrowd%d", os.Getpid())
	c := &crowd{t: t, dir: t.TempDir(), net: netns.NewNamespace(t, id+"s")}
	clients := netns.NewNamespace(t, id+"c")
	c.net.Link(t, "srv", clients, "cli")
	c.net.IP(t, "addr", "add", "10.28.0.2/16", "dev", "srv")
	c.net.IP(t, "link", "set", "srv", "up")
	clients.IP(t, "addr", "add", "10.28.0.254/16", "dev", "cli")
	clients.IP(t, "link", "set", "cli", "up")
	config := `server: {interfaces: [srv], address: 10.28.0.2, http: "127.0.0.1:8080", tftp: "127.0.0.1:6969", api: "127.0.0.1:8443"}
subnets: [{cidr: 10.28.0.0/16, router: 10.28.0.1, dns: [10.28.0.1], domain: example.org}]
pools: [{name: lobby, catchall: true, image: debian-12, range: ` + addresses + `, lease: 1h}]
`
	if err := os.WriteFile(filepath.Join(c.dir, "drover.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	linkDrover(t, c.dir)
	clients.In(t, func() (err error) {
		c.relay, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(crowdRelay))
		return err
	})
	t.Cleanup(func() { _ = c.relay.Close() })
	raw, err := c.relay.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// linkDrover puts drover into a directory: under that name the test binary is the program,
// see TestMain.
func linkDrover(t testing.TB, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "drover"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// start starts the server, and waits for its first answer.
func (c *crowd) start() {
	c.t.Helper()
	log, err := os.Create(filepath.Join(c.dir, "log"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	c.server = c.net.Command(filepath.Join(c.dir, "drover"), "serve", "-c", filepath.Join(c.dir, "drover.yaml"), "--state", c.state())
	c.server.Stderr = log
	if err := c.server.Start(); err != nil {
		c.t.Fatal(err)
	}
	asks := dhcpMessage(pools.MAC{2, 0xff}, 0, dhcpInform, dhcpField{0, netip.MustParseAddr("10.28.0.253")})
	c.t.Cleanup(func() {
		if c.t.Failed() {
			b, err := os.ReadFile(log.Name())
			c.t.Logf("the server's log, %v:\n%s", err, b)
		}
	})
	fixture.Eventually(c.t, "an answer of the server", func() bool {
		c.send(asks)
		_, ok := c.receive(20 * time.Millisecond)
		return ok
	})
}

// state returns the state directory.
func (c *crowd) state() string { return filepath.Join(c.dir, "state") }

// kill ends the server with SIGKILL.
func (c *crowd) kill() {
	_ = c.server.Process.Kill()
	_ = c.server.Wait() // it was killed
}

// send sends a packet to the server. A lost packet is no error.
func (c *crowd) send(b []byte) { _, _ = c.relay.WriteToUDPAddrPort(b, crowdServer) }

// receive returns the next answer, within d.
func (c *crowd) receive(d time.Duration) (dhcpAnswer, bool) {
	if err := c.relay.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.t.Fatal(err)
	}
	var b [1500]byte
	for {
		n, _, err := c.relay.ReadFromUDPAddrPort(b[:])
		if err != nil {
			return dhcpAnswer{}, false
		}
		if a, ok := parseDHCP(b[:n]); ok {
			return a, true
		}
	}
}

// Message types.
const (
	dhcpDiscover = 1
	dhcpOffer    = 2
	dhcpRequest  = 3
	dhcpACK      = 5
	dhcpNAK      = 6
	dhcpRelease  = 7
	dhcpInform   = 8
)

// dhcpField is an option with an address; code 0 is the field ciaddr.
type dhcpField struct {
	code byte
	addr netip.Addr
}

// dhcpMessage returns a message of a client behind the relay, with the necessary fields
// only.
func dhcpMessage(m pools.MAC, xid uint32, kind byte, fields ...dhcpField) []byte {
	b := make([]byte, 240, 300)
	copy(b, []byte{1, 1, 6, 1}) // BOOTREQUEST, Ethernet, one hop
	binary.BigEndian.PutUint32(b[4:], xid)
	copy(b[24:], crowdRelay.Addr().AsSlice())
	copy(b[28:], m[:])
	copy(b[236:], []byte{0x63, 0x82, 0x53, 0x63})
	b = append(b, 53, 1, kind, 55, 5, 1, 3, 6, 15, 51)
	for _, f := range fields {
		if f.code == 0 {
			copy(b[12:], f.addr.AsSlice())
			continue
		}
		b = append(append(b, f.code, 4), f.addr.AsSlice()...)
	}
	return append(b, 255)
}

// dhcpAnswer has the fields of an answer that a client needs.
type dhcpAnswer struct {
	mac  pools.MAC
	xid  uint32
	kind byte
	addr netip.Addr // yiaddr
}

func parseDHCP(b []byte) (a dhcpAnswer, ok bool) {
	if len(b) < 240 || b[0] != 2 {
		return a, false
	}
	copy(a.mac[:], b[28:])
	a.xid = binary.BigEndian.Uint32(b[4:])
	a.addr = netip.AddrFrom4([4]byte(b[16:]))
	for o := b[240:]; len(o) >= 3 && o[0] != 255; o = o[min(2+int(o[1]), len(o)):] {
		if o[0] == 53 {
			a.kind = o[2]
			return a, true
		}
	}
	return a, false
}

// cpuTime returns the processor time of a process so far, user and system.
func cpuTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name of the program may have spaces
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		t.Fatalf("/proc/%d/stat: %q", pid, b)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}
