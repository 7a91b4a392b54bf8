package moonshot_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/ilosim"
	"drover/hardware/bmc"
	"drover/hardware/moonshot"
	"drover/pools"
)

// open opens a manager until the test ends.
func open(t *testing.T, l bmc.Login, via pools.Via) *moonshot.Manager {
	t.Helper()
	m, err := moonshot.Open(l, via)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// drivers returns an SSH and a REST driver for the node c2n1 of a simulated chassis.
func drivers(t *testing.T, c *ilosim.Chassis) map[string]bmc.Driver {
	t.Helper()
	login, _ := serve(t, c)
	slot := pools.Slot{Cartridge: 2, Node: 1}
	return map[string]bmc.Driver{
		"ssh":  open(t, login, pools.ViaSSH).Driver(slot),
		"rest": open(t, serveREST(t, c.Handler(ilosim.Href), c), pools.ViaREST).Driver(slot),
	}
}

// TestPower runs each action over each driver, against faults of nodes.
func TestPower(t *testing.T) {
	for _, tt := range []struct {
		name    string
		action  bmc.Action
		set     func(*ilosim.Chassis)
		want    bmc.State
		err     string
		actions string // commands that the node executed
	}{
		{"status", bmc.Status, nil, bmc.Off, "", ""},
		{"on", bmc.SwitchOn, nil, bmc.On, "", "on"},
		{"off, when it is", bmc.SwitchOff, nil, bmc.Off, "", ""},
		{"cycle", bmc.Cycle, nil, bmc.On, "", "off on"},
		{"cycle, when it is off", bmc.Cycle, nil, bmc.Off, "", ""},
		{"pxe", bmc.PXE, nil, bmc.On, "", "on-pxe"},
		{"bootonce is lost when it is switched off", bmc.PXE, func(c *ilosim.Chassis) { c.Inject(ilosim.BootOnceLost, ilosim.Always) }, bmc.On, "", "on-pxe"},
		{"bootonce is not taken", bmc.PXE, func(c *ilosim.Chassis) { c.Inject(ilosim.BootOnceIgnored, ilosim.Always) }, bmc.Off, "boots? from the network once", ""},
		{"a system that ignores the request", bmc.Cycle, func(c *ilosim.Chassis) { c.Inject(ilosim.SoftOffIgnored, ilosim.Always) }, bmc.On, "", "off on"},
		{"on is ignored at first", bmc.SwitchOn, func(c *ilosim.Chassis) { c.Inject(ilosim.OnIgnored, 1) }, bmc.On, "", "on"},
		{"never on", bmc.SwitchOn, func(c *ilosim.Chassis) { c.Inject(ilosim.OnIgnored, ilosim.Always) }, bmc.Off, "it is off after 1s, and should be on", ""},
		{"unavailable", bmc.PXE, func(c *ilosim.Chassis) { c.HoldPower("c2n1", "Unavailable") }, bmc.Unavailable, "it is unavailable after 1s, and should be off", ""},
		{"an unknown power state", bmc.PXE, func(c *ilosim.Chassis) { c.HoldPower("c2n1", "Dreaming") }, bmc.Unknown, "it is unknown after 1s, and should be off", ""},
		{"an empty slot", bmc.Status, func(c *ilosim.Chassis) { c.Remove("c2n1") }, bmc.Unknown, "Invalid node|404", ""},
		{"only PXE in upper case", bmc.PXE, func(c *ilosim.Chassis) { c.Inject(ilosim.OnlyUpperPXE, ilosim.Always) }, bmc.On, "", "on-pxe"},
	} {
		for _, driver := range []string{"ssh", "rest"} {
			t.Run(tt.name+" over "+driver, func(t *testing.T) {
				t.Parallel()
				c := ilosim.New(1, 3, 1, 2)
				c.PowerDelay = 60 * time.Millisecond
				var happened []string
				c.OnAction = func(slot string, a ilosim.Action) {
					word := map[bool]string{true: "on", false: "off"}[a.On]
					if a.PXE {
						word += "-pxe"
					}
					if slot != "c2n1" {
						word += " of " + slot
					}
					happened = append(happened, word)
				}
				if tt.set != nil {
					tt.set(c)
				}
				s := bmc.Switcher{Poll: 10 * time.Millisecond, Wait: 2 * time.Minute}
				if tt.err != "" {
					s.Wait = time.Second // the state is never reached
				}
				machines := []bmc.Machine{{Name: "c2n1", Driver: drivers(t, c)[driver]}}
				if tt.action == bmc.Cycle && tt.want == bmc.On { // it leaves off what is off
					if r := s.Do(t.Context(), bmc.SwitchOn, machines)[0]; r.Err != nil {
						t.Fatal(r.Err)
					}
					happened = nil
				}
				r := s.Do(t.Context(), tt.action, machines)[0]
				if r.State != tt.want || (r.Err == nil) != (tt.err == "") || tt.err != "" && !matches(tt.err, r.Error) {
					t.Errorf("got %s, %v, want %s, %q", r.State, r.Err, tt.want, tt.err)
				}
				if got := strings.Join(happened, " "); got != tt.actions {
					t.Errorf("got %q, want %q", got, tt.actions)
				}
			})
		}
	}
}

// matches reports whether text contains one of the words of pattern. The words are
// separated by "|", and "?" makes the letter before it optional.
func matches(pattern, text string) bool {
	return slices.ContainsFunc(strings.Split(pattern, "|"), func(p string) bool {
		i := strings.IndexByte(p, '?')
		if i < 0 {
			return strings.Contains(text, p)
		}
		return strings.Contains(text, p[:i]+p[i+1:]) || strings.Contains(text, p[:i-1]+p[i+1:])
	})
}

// TestPXEOfRunningNodes restarts 45 running nodes from the network, with one login.
func TestPXEOfRunningNodes(t *testing.T) {
	c := ilosim.New(1, 45, 1, 2)
	c.PowerDelay = 30 * time.Millisecond
	c.Inject(ilosim.BootOnceLost, ilosim.Always)
	pxe := map[string]int{}
	login, _ := serve(t, c)
	manager := open(t, login, pools.ViaSSH)
	var machines []bmc.Machine
	for x := 1; x <= 45; x++ {
		slot := pools.Slot{Cartridge: x, Node: 1}
		machines = append(machines, bmc.Machine{Name: slot.String(), Driver: manager.Driver(slot)})
	}
	commands := 0
	s := bmc.Switcher{Poll: 10 * time.Millisecond, Wait: 2 * time.Minute, OnCommand: func(string, string) { commands++ }}
	for _, r := range s.Do(t.Context(), bmc.SwitchOn, machines) {
		if r.State != bmc.On || r.Err != nil {
			t.Fatal(r)
		}
	}
	c.OnAction = func(slot string, a ilosim.Action) {
		if a.On && a.PXE {
			pxe[slot]++
		}
	}
	for _, r := range s.Do(t.Context(), bmc.PXE, machines) {
		if r.State != bmc.On || r.Err != nil || pxe[r.Name] != 1 {
			t.Errorf("%+v, booted from the network %d times, want on, once", r, pxe[r.Name])
		}
	}
	if c.Logins() != 1 || commands < 4*45 {
		t.Errorf("got %d logins and %d commands, want 1 and at least 180", c.Logins(), commands)
	}
}

// TestManagerReconnects: a manager connects again after a broken connection, and not
// after a refused login.
func TestManagerReconnects(t *testing.T) {
	c := ilosim.New(1, 1, 1, 1)
	login, server := serve(t, c)
	slot := pools.Slot{Cartridge: 1, Node: 1}
	m := open(t, login, pools.ViaSSH)
	p := m.Driver(slot)
	if s, err := p.State(t.Context()); s != bmc.Off || err != nil {
		t.Fatal(s, err)
	}
	server.Close()
	again, err := c.ServeSSH(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	m.SetHostKey(again.Fingerprint)
	if s, err := p.State(t.Context()); s != bmc.Off || err != nil {
		t.Errorf("after the connection broke: got %s, %v", s, err)
	}
	login.Password, login.HostKey = "wrong", again.Fingerprint
	bad := open(t, login, pools.ViaSSH).Driver(slot)
	before := c.Logins()
	for range 3 {
		if _, err := bad.State(t.Context()); !errors.Is(err, bmc.ErrRefused) {
			t.Errorf("got %v, want %v", err, bmc.ErrRefused)
		}
	}
	if got := c.Logins() - before; got != 1 {
		t.Errorf("got %d logins with a wrong password, want 1", got)
	}
}

// TestSlots reads the slots that have a node.
func TestSlots(t *testing.T) {
	c := ilosim.New(1, 3, 2, 1)
	c.Remove("c2n2")
	c.Put(ilosim.Node{Cartridge: 3, Number: 1, Empty: true})
	login, _ := serve(t, c)
	m := open(t, login, pools.ViaSSH)
	const want = "[c1n1 c1n2 c2n1 c3n2]"
	if got, err := m.Slots(t.Context()); err != nil || fmt.Sprint(got) != want {
		t.Errorf("ssh: got %v, %v, want %s", got, err, want)
	}
	if got, err := open(t, serveREST(t, c.Handler(ilosim.OData), c), pools.ViaREST).Slots(t.Context()); err != nil || fmt.Sprint(got) != want {
		t.Errorf("rest: got %v, %v, want %s", got, err, want)
	}
	c.Inject(ilosim.UnknownList, 1)
	if _, err := m.Slots(t.Context()); !errors.Is(err, bmc.ErrUnreadable) {
		t.Errorf("an unknown command: got %v", err)
	}
	c.Inject(ilosim.NoRights, 1)
	if _, err := m.Slots(t.Context()); !errors.Is(err, bmc.ErrRefused) {
		t.Errorf("no rights: got %v", err)
	}
}
