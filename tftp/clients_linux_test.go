package tftp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
	"drover/tftp"
)

// cable is a network of two namespaces, the server's with 10.69.0.1 and
// 10.69.0.3, and the clients' with 10.69.0.2. Nothing in it reaches the host.
type cable struct {
	t        *testing.T
	srv, cli string // namespaces
}

// newCable makes the network, of a pair of Ethernet interfaces, or, when it is
// bad, of wires with weather.
func newCable(t *testing.T, bad bool) *cable {
	t.Helper()
	fixture.Root(t)
	if _, err := exec.LookPath("ip"); err != nil {
		fixture.Missing(t, err)
	}
	id := fmt.Sprintf("drvtftp%d%s", os.Getpid(), strings.NewReplacer("Test", "", "/", "-").Replace(t.Name()))
	c := &cable{t: t, srv: id + "s", cli: id + "c"}
	for _, ns := range []string{c.srv, c.cli} {
		c.do("ip", "netns", "add", ns)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
	}
	if bad {
		c.wires()
	} else {
		c.do("ip", "-n", c.srv, "link", "add", "srv", "type", "veth", "peer", "name", "cli", "netns", c.cli)
	}
	for _, a := range []string{"10.69.0.1/24", "10.69.0.3/24", "fd69::1/64", "fe80::1/64"} {
		c.do("ip", "-n", c.srv, "addr", "add", a, "dev", "srv", "nodad")
	}
	c.do("ip", "-n", c.cli, "addr", "add", "10.69.0.2/24", "dev", "cli")
	for _, a := range []string{"fd69::2/64", "fe80::2/64"} {
		c.do("ip", "-n", c.cli, "addr", "add", a, "dev", "cli", "nodad")
	}
	c.do("ip", "-n", c.srv, "link", "set", "srv", "up")
	c.do("ip", "-n", c.cli, "link", "set", "cli", "up")
	return c
}

// do runs a program that must succeed.
func (c *cable) do(name string, args ...string) {
	c.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// wires makes both interfaces ends of this process, which carries what it reads
// from one to the other, and loses, doubles and reorders some.
func (c *cable) wires() {
	c.t.Helper()
	srv, cli := c.tun(c.srv, "srv"), c.tun(c.cli, "cli")
	carry := func(from, to *os.File, seed uint64) {
		dice := rand.New(rand.NewPCG(seed, 0))
		for b := make([]byte, 2000); ; {
			n, err := from.Read(b)
			if err != nil {
				return // the test has ended
			}
			packet := bytes.Clone(b[:n])
			wait, copies := 500*time.Microsecond, 1
			switch roll := dice.Float64(); {
			case roll < 0.01:
				copies = 0
			case roll < 0.03:
				copies = 2
			case roll < 0.05:
				wait *= 3
			}
			for range copies {
				time.AfterFunc(wait, func() { to.Write(packet) })
			}
		}
	}
	go carry(srv, cli, 1)
	go carry(cli, srv, 2)
}

// tun makes an interface whose packets this process reads and writes.
func (c *cable) tun(ns, name string) (f *os.File) {
	c.t.Helper()
	err := inside(ns, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		ifr, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
		f = os.NewFile(uintptr(fd), name) // not before it is an interface: the poller would see nothing
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { f.Close() })
	return f
}

// inside runs f with the thread in a namespace. Sockets that f opens stay there.
func inside(ns string, f func() error) error {
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		file, err := os.Open(filepath.Join("/run/netns", ns))
		if err != nil {
			errs <- err
			return
		}
		defer file.Close()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			errs <- err
			return
		}
		errs <- f()
	}()
	return <-errs
}

// run runs a client where clients are.
func (c *cable) run(dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", c.cli, name}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// newCableSite is a site at the end of a cable.
func newCableSite(t *testing.T, bad bool, set func(*tftp.Server)) (*site, *cable) {
	t.Helper()
	c := newCable(t, bad)
	listen := func(s *tftp.Server) error {
		s.Inside(func(open func() error) error { return inside(c.srv, open) })
		return inside(c.srv, s.Listen)
	}
	return startSite(t, listen, func(s *tftp.Server) {
		s.Addr = ":69"
		if set != nil {
			set(s)
		}
	}), c
}

// TestRealClients fetches with clients of other projects, over a good
// network and one that loses, doubles and reorders.
func TestRealClients(t *testing.T) {
	for _, client := range []struct {
		name, program string
		args          []string // "got" is what to write
		block, window int
		refusal       string // what it prints for a file that is not there
	}{
		{"busybox", "busybox", []string{"tftp", "-g", "-r", "FILE", "-l", "got", "10.69.0.1"}, 512, 1, "file not found"},
		{"busybox with large blocks", "busybox", []string{"tftp", "-g", "-b", "1468", "-r", "FILE", "-l", "got", "10.69.0.1"}, 1468, 1, "file not found"},
		{"curl", "curl", []string{"-sS", "--tftp-blksize", "1468", "-o", "got", "tftp://10.69.0.1/FILE"}, 1468, 1, "curl: (68)"},
		{"curl without options", "curl", []string{"-sS", "--tftp-no-options", "-o", "got", "tftp://10.69.0.1/FILE"}, 512, 1, "curl: (68)"},
		{"curl by IPv6", "curl", []string{"-sS", "--tftp-no-options", "-o", "got", "tftp://[fd69::1]/FILE"}, 512, 1, "curl: (68)"},
		{"curl by IPv6 on the link", "curl", []string{"-sS", "--tftp-no-options", "-o", "got", "tftp://[fe80::1%25cli]/FILE"}, 512, 1, "curl: (68)"},
		{"tftp-hpa", "tftp", []string{"-m", "binary", "10.69.0.1", "-c", "get", "FILE", "got"}, 512, 1, "file not found"},
		{"atftp", "atftp", []string{"-g", "-r", "FILE", "-l", "got", "10.69.0.1"}, 512, 1, "file not found"},
		{"atftp with windows", "atftp", []string{"--option", "blksize 1428", "--option", "windowsize 8", "-g", "-r", "FILE", "-l", "got", "10.69.0.1"}, 1428, 8, "file not found"},
		{"atftp with large windows", "atftp", []string{"--option", "blksize 1468", "--option", "windowsize 64", "-g", "-r", "FILE", "-l", "got", "10.69.0.1"}, 1468, 64, "file not found"},
	} {
		for _, network := range []string{"good", "bad"} {
			if client.name == "curl" && network == "bad" {
				continue // it asks us to wait 6 s for each packet that is lost
			}
			t.Run(client.name+" on a "+network+" network", func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(client.program); err != nil {
					fixture.Missing(t, err)
				}
				s, c := newCableSite(t, network == "bad", func(s *tftp.Server) {
					if strings.Contains(client.name, "IPv6") {
						s.Addr = "[::]:69"
					}
				})
				want := content()
				if network == "bad" {
					want = want[:100_000]
				}
				s.write("loader", want)
				get := func(file string) (string, []byte, error) {
					dir, args := t.TempDir(), slices.Clone(client.args)
					for i := range args {
						args[i] = strings.ReplaceAll(args[i], "FILE", file)
					}
					out, err := c.run(dir, client.program, args...)
					b, readErr := os.ReadFile(filepath.Join(dir, "got"))
					return out, b, errors.Join(err, readErr)
				}
				if out, b, err := get("loader"); err != nil || !bytes.Equal(b, want) {
					t.Fatalf("got %d bytes, %v\n%s", len(b), err, out)
				}
				x := s.next()
				if x.Err != nil || x.Bytes != int64(len(want)) || x.BlockSize != client.block || x.Window != client.window || network == "good" && x.Resent > 0 {
					t.Errorf("got transfer %+v, want blocks of %d in windows of %d", x, client.block, client.window)
				}
				if network == "good" {
					if out, _, _ := get("nope"); !strings.Contains(out, client.refusal) {
						t.Errorf("a file that is not there: got %q, want it to say %q", out, client.refusal)
					}
				}
			})
		}
	}
}

// TestPathMTU: windows reach a client whose path has a smaller MTU than the interface, and the
// kernel knows it. Several blocks in one message were refused then, again and again.
func TestPathMTU(t *testing.T) {
	for name, client := range map[string]struct {
		addr, host, to string
	}{"IPv4": {":69", "10.69.0.1", "10.69.0.2/32"}, "IPv6": {"[::]:69", "fd69::1", "fd69::2/128"}} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath("atftp"); err != nil {
				fixture.Missing(t, err)
			}
			s, c := newCableSite(t, false, func(s *tftp.Server) { s.Addr = client.addr })
			c.do("ip", "-n", c.srv, "route", "add", client.to, "dev", "srv", "mtu", "1400")
			want := content()
			s.write("loader", want)
			dir := t.TempDir()
			out, err := c.run(dir, "atftp", "--option", "blksize 1468", "--option", "windowsize 8", "-g", "-r", "loader", "-l", "got", client.host)
			got, readErr := os.ReadFile(filepath.Join(dir, "got"))
			if err != nil || readErr != nil || !bytes.Equal(got, want) {
				t.Fatalf("got %d bytes, %v, %v\n%s", len(got), err, readErr, out)
			}
			if x := s.next(); x.Err != nil || x.Resent > 0 {
				t.Errorf("got transfer %+v", x)
			}
		})
	}
}

// TestMayBeCut: routers may cut the blocks (no DF), so that they arrive where the path has a
// smaller MTU and ICMP is filtered.
func TestMayBeCut(t *testing.T) {
	s, c := newCableSite(t, false, nil)
	var fd int
	err := inside(c.cli, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if out, err := c.run(t.TempDir(), "curl", "-sS", "--tftp-blksize", "1468", "-o", "got", "tftp://10.69.0.1/loader"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.next()
	blocks := 0
	for b := make([]byte, 2000); ; {
		n, err := unix.Read(fd, b)
		if err != nil {
			break // no more packets
		}
		if n < 1000 {
			continue
		}
		blocks++
		if b[6]&0x40 != 0 {
			t.Fatal("a block has the flag DF")
		}
	}
	if blocks == 0 {
		t.Error("saw no block")
	}
}

// TestBroadcast: a request to a broadcast address gets no answer (RFC 1123 section
// 4.2.3.5): several servers may be on the network. Case W9.
func TestBroadcast(t *testing.T) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprint("single port ", single), func(t *testing.T) {
			_, c := newCableSite(t, false, func(s *tftp.Server) { s.SinglePort = single })
			var conn *net.UDPConn
			err := inside(c.cli, func() (err error) {
				conn, err = net.ListenUDP("udp4", nil) // Go allows it to broadcast
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			r := newROMOn(t, conn)
			c.do("ip", "-n", c.cli, "route", "add", "255.255.255.255", "dev", "cli")
			for _, addr := range []string{"10.69.0.255", "255.255.255.255"} {
				for _, file := range []string{"loader", "missing", "../bad"} {
					r.ask(addr+":69", file, "octet")
				}
			}
			r.ask("10.69.0.1:69", "small", "octet", "blksize", "1000")
			if op, _ := r.read(); op != 6 {
				t.Errorf("got packet %d, want the options of the last request", op)
			}
			r.silent()
		})
	}
}

// TestSourceAddress: a host with several addresses answers from the one that
// was asked, by one port or several.
func TestSourceAddress(t *testing.T) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprint("single port ", single), func(t *testing.T) {
			s, c := newCableSite(t, false, func(s *tftp.Server) { s.SinglePort = single })
			for _, addr := range []string{"10.69.0.1", "10.69.0.3"} {
				var conn *net.UDPConn
				err := inside(c.cli, func() (err error) {
					conn, err = net.ListenUDP("udp4", nil)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				r := newROMOn(t, conn)
				r.ask(addr+":69", "small", "octet")
				r.finish(512)
				if from := r.from.(*net.UDPAddr); from.IP.String() != addr || (from.Port == 69) != single {
					t.Errorf("asked at %s, got the answer from %s", addr, from)
				}
				s.next()
			}
		})
	}
}

// TestNetworkMTU: no block is larger than a packet of the network, whatever
// the client asks for.
func TestNetworkMTU(t *testing.T) {
	s, c := newCableSite(t, false, nil)
	c.do("ip", "-n", c.srv, "link", "set", "srv", "mtu", "1400")
	out, err := c.run(t.TempDir(), "curl", "-sS", "--tftp-blksize", "8192", "-o", "got", "tftp://10.69.0.1/loader")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if x := s.next(); x.Err != nil || x.BlockSize != 1368 {
		t.Errorf("got transfer %+v, want blocks of 1368 bytes", x)
	}
}
