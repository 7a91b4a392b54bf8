package moonshot_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/ilosim"
	"drover/hardware/bmc"
	"drover/hardware/moonshot"
	"drover/hardware/sshcli"
	"drover/pools"

	"golang.org/x/crypto/ssh/knownhosts"
)

// quick has timeouts for tests that wait for a timeout. They are long enough to connect
// on a busy machine.
var quick = bmc.Timeouts{Handshake: 3 * time.Second, Command: 3 * time.Second, Backoff: time.Millisecond}

// serve starts a simulated chassis and returns a login for it.
func serve(t *testing.T, c *ilosim.Chassis) (bmc.Login, *ilosim.SSHServer) {
	t.Helper()
	s, err := c.ServeSSH("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return bmc.Login{
		Address: s.Addr, User: c.User, Password: bmc.Secret(c.Password), Legacy: true,
		HostKey: s.Fingerprint, Timeouts: bmc.Timeouts{Backoff: time.Millisecond},
	}, s
}

// read reads a chassis over SSH.
func read(ctx context.Context, t *testing.T, l bmc.Login) (*moonshot.Inventory, string, error) {
	t.Helper()
	return open(t, l, pools.ViaSSH).Inventory(ctx)
}

// TestProfiles reads chassis with all kinds of SSH servers, each with one login.
func TestProfiles(t *testing.T) {
	for _, p := range ilosim.Profiles() {
		t.Run(string(p), func(t *testing.T) {
			c := ilosim.New(1, 3, 1, 2)
			c.Profile = p
			login, _ := serve(t, c)
			inv, _, err := read(t.Context(), t, login)
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(inv, nil); !strings.Contains(got, "c3n1 off 1A=94:57:a5:01:03:00 2B=94:57:a5:01:03:01") || len(inv.Nodes) != 3 {
				t.Errorf("got:\n%s", got)
			}
			if got := c.Logins(); got != 1 {
				t.Errorf("got %d logins, want 1", got)
			}
		})
	}
}

// TestLegacyAlgorithms: without Legacy, old firmware is an error, and the password is
// not sent.
func TestLegacyAlgorithms(t *testing.T) {
	for _, p := range []ilosim.Profile{ilosim.Legacy14, ilosim.Legacy1, ilosim.DSS} {
		c := ilosim.New(1, 1, 1, 1)
		c.Profile = p
		login, _ := serve(t, c)
		login.Legacy = false
		_, _, err := read(t.Context(), t, login)
		if !errors.Is(err, bmc.ErrUnreachable) || !strings.Contains(err.Error(), "--legacy") {
			t.Errorf("%s: got %v, want one that says --legacy", p, err)
		}
		if got := c.Logins(); got != 0 {
			t.Errorf("%s: got %d logins, want 0", p, got)
		}
	}
}

// TestLooks: all output formats, over exec and over the shell, give the same inventory.
func TestLooks(t *testing.T) {
	for _, tt := range []struct {
		name  string
		looks string
		fault ilosim.Fault
	}{
		{"2021", "", ""}, {"2014", "old", ""}, {"2.0", "two", ""}, {"2.0 without a list", "two", ilosim.UnknownList},
		{"CR CR LF", "crcrlf", ""}, {"upper case", "upper dashes", ""}, {"blank slots", "blank", ""},
		{"colours", "colours", ""}, {"a message", "async", ""}, {"more columns", "extra", ""}, {"wrapped", "wrap", ""},
		{"Latin-1", "bad-bytes", ""},
		{"shell", "", ilosim.NoExec}, {"shell, old", "old crcrlf", ilosim.NoExec}, {"shell with pager", "pager", ilosim.NoExec},
		{"shell since exec says nothing", "", ilosim.ExecEmpty}, {"shell since exec hangs up", "", ilosim.ExecCloses},
		{"shell, wrapped, with pager", "wrap pager", ilosim.NoExec},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := ilosim.New(7, 12, 4, 4)
			c.Remove("c3n2")
			c.Put(ilosim.Node{Cartridge: 5, Number: 1, Empty: true})
			for _, gone := range []string{"c5n2", "c5n3", "c5n4"} {
				c.Remove(gone)
			}
			c.Edit("c4n1", func(n *ilosim.Node) { n.AssetTag, n.MACs[1] = "c9n9 On", "N/A" })
			var err error
			if c.Format, err = ilosim.ParseFormat(strings.Fields(tt.looks)); err != nil {
				t.Fatal(err)
			}
			if tt.fault != "" {
				c.Inject(tt.fault, ilosim.Always)
			}
			login, _ := serve(t, c)
			inv, transcript, err := read(t.Context(), t, login)
			if err != nil {
				t.Fatalf("%v\n%s", err, transcript)
			}
			want := 11*4 - 1
			if tt.fault == ilosim.UnknownList {
				want++ // without the list, c5 is not known to be empty
			}
			if len(inv.Nodes) != want || len(inv.Problems) > 0 {
				t.Errorf("got %d nodes and problems %v, want %d and none\n%s", len(inv.Nodes), inv.Problems, want, transcript)
			}
			for _, n := range inv.Nodes {
				cards := 4
				if n.String() == "c4n1" {
					cards = 3
				}
				if n.Cartridge != 5 && len(n.NICs) != cards {
					t.Errorf("%s: got %d cards, want %d", n.Slot, len(n.NICs), cards)
				}
			}
			want = 1
			if tt.fault == ilosim.ExecCloses {
				want = 2
			}
			if got := c.Logins(); got != want {
				t.Errorf("got %d logins, want %d", got, want)
			}
		})
	}
}

// TestPrompt: a prompt of several words must be in the login.
func TestPrompt(t *testing.T) {
	c := ilosim.New(1, 5, 1, 2)
	c.Format.Prompt = "Chassis 1 > "
	c.Inject(ilosim.NoExec, ilosim.Always)
	login, _ := serve(t, c)
	login.Timeouts = quick
	if _, _, err := read(t.Context(), t, login); !errors.Is(err, bmc.ErrUnreachable) {
		t.Errorf("without the prompt: got %v, want %v", err, bmc.ErrUnreachable)
	}
	if got := c.Logins(); got != 1 {
		t.Errorf("got %d logins, want 1", got)
	}
	login.Prompt = "Chassis 1 >"
	inv, text, err := read(t.Context(), t, login)
	if err != nil || len(inv.Nodes) != 5 || len(inv.Problems)+len(inv.Warnings) > 0 {
		t.Errorf("got %v\n%s", err, text)
	}
}

// TestFaults: each fault ends soon with its kind of error, and without a partial
// inventory.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  ilosim.Fault
		times  int
		want   error // nil: it works in the end
		says   string
		logins int
	}{
		{"silent", ilosim.Silent, ilosim.Always, bmc.ErrUnreachable, "says nothing", 0},
		{"silent once", ilosim.Silent, 1, nil, "", 1},
		{"session limit", ilosim.SessionLimit, ilosim.Always, bmc.ErrUnreachable, "", 0},
		{"session limit for a moment", ilosim.SessionLimit, 2, nil, "", 1},
		{"the login is not answered", ilosim.StallLogin, ilosim.Always, bmc.ErrUnreachable, "did not answer the login", 0},
		{"a locked account", ilosim.Locked, ilosim.Always, bmc.ErrRefused, "locked", 1},
		{"no rights", ilosim.NoRights, ilosim.Always, bmc.ErrRefused, "not authorized", 1},
		{"half a table", ilosim.StallMidTable, ilosim.Always, bmc.ErrUnreachable, `did not answer "show node list"`, 1},
		{"cut in a table", ilosim.CutMidTable, ilosim.Always, bmc.ErrUnreachable, "broke off", 2},
		{"cut in a table once", ilosim.CutMidTable, 1, nil, "", 2},
		{"garbage", ilosim.Garbage, ilosim.Always, bmc.ErrUnreadable, "more than 1048576 bytes", 1},
		{"exec hangs up", ilosim.ExecCloses, ilosim.Always, nil, "", 2},
	} {
		for _, shell := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, shell %t", tt.name, shell), func(t *testing.T) {
				t.Parallel()
				c := ilosim.New(1, 20, 1, 2)
				c.Inject(tt.fault, tt.times)
				if shell {
					c.Inject(ilosim.NoExec, ilosim.Always)
				}
				login, _ := serve(t, c)
				login.Timeouts = quick
				inv, _, err := read(t.Context(), t, login)
				switch {
				case tt.want == nil && (err != nil || len(inv.Nodes) != 20):
					t.Errorf("got %v, want 20 nodes", err)
				case tt.want != nil && (!errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || inv != nil):
					t.Errorf("got %v, want %v that says %q", err, tt.want, tt.says)
				}
				if got := c.Logins(); got != tt.logins {
					t.Errorf("got %d logins, want %d", got, tt.logins)
				}
			})
		}
	}
}

// TestNeitherExecNorShell: a manager accepts the login, and then executes nothing.
func TestNeitherExecNorShell(t *testing.T) {
	for _, f := range []ilosim.Fault{ilosim.NoExec, ilosim.ExecEmpty, ilosim.ExecCloses} {
		c := ilosim.New(1, 1, 1, 1)
		c.Inject(f, ilosim.Always)
		c.Inject(ilosim.NoShell, ilosim.Always)
		login, _ := serve(t, c)
		_, _, err := read(t.Context(), t, login)
		if !errors.Is(err, bmc.ErrUnreachable) || !strings.Contains(err.Error(), "neither exec nor") {
			t.Errorf("%s: got %v, want one that says neither", f, err)
		}
	}
}

// TestUnreachable: a closed port, and an address without a port.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	login := bmc.Login{Address: addr, User: "a", Password: "b", HostKey: "SHA256:x", Timeouts: quick}
	if _, _, err := read(t.Context(), t, login); !errors.Is(err, bmc.ErrUnreachable) || !strings.Contains(err.Error(), addr) {
		t.Errorf("got %v, want unreachable %s", err, addr)
	}
	login.Address = "chassis"
	if _, err := sshcli.Dial(t.Context(), login); err == nil || !strings.Contains(err.Error(), "want host:port") {
		t.Errorf("got %v, want host:port", err)
	}
}

// TestWrongPasswordOnce: three wrong passwords lock an account, so a password is sent
// once. It is not sent again as keyboard-interactive or after a delay.
func TestWrongPasswordOnce(t *testing.T) {
	for _, p := range ilosim.Profiles() {
		c := ilosim.New(1, 1, 1, 1)
		c.Profile = p
		login, _ := serve(t, c)
		login.Password = "wrong horse"
		_, _, err := read(t.Context(), t, login)
		if !errors.Is(err, bmc.ErrRefused) {
			t.Errorf("%s: got %v, want %v", p, err, bmc.ErrRefused)
		}
		if text := fmt.Sprintf("%v %+v %#v", err, login, login); strings.Contains(text, "horse") {
			t.Errorf("%s: the password is in %q", p, text)
		}
		if got := c.Logins(); got != 1 {
			t.Errorf("%s: got %d logins, want 1", p, got)
		}
	}
}

// TestHostKey: a host key is pinned at first use. Another key is an error before the
// password is sent.
func TestHostKey(t *testing.T) {
	for _, p := range []ilosim.Profile{ilosim.Modern, ilosim.Legacy1, ilosim.DSS} {
		t.Run(string(p), func(t *testing.T) {
			c := ilosim.New(1, 1, 1, 1)
			c.Profile = p
			login, first := serve(t, c)
			var news []string
			login.HostKey = ""
			login.HostKeys = &bmc.Pins{Path: filepath.Join(t.TempDir(), "sub", "known_hosts"), OnNew: func(addr, print string) { news = append(news, addr+" "+print) }}
			for range 2 {
				if _, _, err := read(t.Context(), t, login); err != nil {
					t.Fatal(err)
				}
			}
			if want := first.Addr + " " + first.Fingerprint; len(news) != 1 || news[0] != want {
				t.Errorf("pinned: got %q, want %q once", news, want)
			}
			if info, err := os.Stat(login.HostKeys.Path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("known_hosts: got %v, %v, want mode 0600", info, err)
			}
			first.Close()
			other, err := c.ServeSSH(first.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			before := c.Logins()
			_, _, err = read(t.Context(), t, login)
			if !errors.Is(err, bmc.ErrHostKey) || !strings.Contains(err.Error(), first.Fingerprint) || !strings.Contains(err.Error(), other.Fingerprint) {
				t.Errorf("got %v, want %v with both fingerprints", err, bmc.ErrHostKey)
			}
			login.HostKey = first.Fingerprint
			if _, _, err = read(t.Context(), t, login); !errors.Is(err, bmc.ErrHostKey) {
				t.Errorf("with the fingerprint given: got %v, want %v", err, bmc.ErrHostKey)
			}
			if got := c.Logins(); got != before {
				t.Errorf("got %d logins with the wrong key, want none", got-before)
			}
		})
	}
}

// TestNowhereToPin: a key that cannot be pinned is an error at once.
func TestNowhereToPin(t *testing.T) {
	c := ilosim.New(1, 1, 1, 1)
	login, served := serve(t, c)
	file := filepath.Join(t.TempDir(), "file")
	for _, tt := range []struct{ path, text, says string }{
		{file + "/below", "", "not a directory"},
		{file, knownhosts.Normalize(served.Addr) + " no key\n", file + ":1: no line of known hosts"},
		{file, strings.Repeat("#", 2<<20), "more than"},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		login.HostKey, login.HostKeys = "", &bmc.Pins{Path: tt.path}
		_, _, err := read(t.Context(), t, login)
		if err == nil || !strings.Contains(err.Error(), tt.says) || errors.Is(err, bmc.ErrUnreachable) {
			t.Errorf("got %v, want %q", err, tt.says)
		}
	}
	login.HostKeys = nil
	if _, _, err := read(t.Context(), t, login); !errors.Is(err, bmc.ErrHostKey) {
		t.Errorf("without a file: got %v, want %v", err, bmc.ErrHostKey)
	}
	if c.Logins() != 0 {
		t.Errorf("got %d logins, want none", c.Logins())
	}
}

// TestBrokenPin: a part of a line, which a full disk left, and which no newline ends, is in the way
// of no other chassis, and stays a line of its own.
func TestBrokenPin(t *testing.T) {
	first, _ := serve(t, ilosim.New(1, 1, 1, 1))
	second, _ := serve(t, ilosim.New(2, 1, 1, 1))
	var broken []string
	pins := &bmc.Pins{Path: filepath.Join(t.TempDir(), "known_hosts"), OnBroken: func(place string) { broken = append(broken, place) }}
	first.HostKey, first.HostKeys, second.HostKey, second.HostKeys = "", pins, "", pins
	check := func(login bmc.Login) {
		t.Helper()
		if _, _, err := read(t.Context(), t, login); err != nil {
			t.Error(err)
		}
	}
	check(first)
	pinned, err := os.ReadFile(pins.Path)
	if err != nil {
		t.Fatal(err)
	}
	const torn = "10.0.0.2 ssh-ed25519 AAAAC3NzaC1lZ"
	if err := os.WriteFile(pins.Path, append(pinned, torn...), 0o600); err != nil {
		t.Fatal(err)
	}
	check(first)
	check(second)
	check(second)
	if want := []string{pins.Path + ":2"}; !slices.Equal(broken, want) {
		t.Errorf("reported: %q, want %q", broken, want)
	}
	data, err := os.ReadFile(pins.Path)
	if lines := strings.Split(string(data), "\n"); err != nil || len(lines) != 4 || lines[0]+"\n" != string(pinned) || lines[1] != torn {
		t.Errorf("got %q, %v, want the pin, the part of a line, and another pin", data, err)
	}
}

// TestFullChassis reads 45 and 180 nodes with one login.
func TestFullChassis(t *testing.T) {
	for _, nodes := range []int{1, 4} {
		c := ilosim.New(1, pools.Cartridges, nodes, 2)
		c.Profile = ilosim.Legacy14
		login, _ := serve(t, c)
		inv, _, err := read(t.Context(), t, login)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(inv.Nodes), 45*nodes; got != want || c.Logins() != 1 {
			t.Errorf("got %d nodes with %d logins, want %d with 1", got, c.Logins(), want)
		}
	}
}

// TestManyChassis reads twenty chassis in parallel, with one file of pins.
func TestManyChassis(t *testing.T) {
	keys := &bmc.Pins{Path: filepath.Join(t.TempDir(), "known_hosts")}
	var wg sync.WaitGroup
	for i := range 20 {
		c := ilosim.New(byte(i), pools.Cartridges, 1, 2)
		login, _ := serve(t, c)
		login.HostKey, login.HostKeys = "", keys
		wg.Go(func() {
			inv, _, err := read(t.Context(), t, login)
			if err != nil || len(inv.Nodes) != 45 || inv.Nodes[0].NICs[0].MAC[3] != byte(i) {
				t.Errorf("chassis %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if data, err := os.ReadFile(keys.Path); err != nil || strings.Count(string(data), "\n") != 20 {
		t.Errorf("known_hosts: got %d lines, %v, want 20", strings.Count(string(data), "\n"), err)
	}
}

// TestCancel ends a wait by its context.
func TestCancel(t *testing.T) {
	c := ilosim.New(1, 1, 1, 1)
	c.CommandDelay = time.Hour
	login, _ := serve(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := read(ctx, t, login); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}
