package ilo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/ilosim"
	"drover/pools/ilo"
)

// drivers are the ways to the same node, c2n1 of a simulated chassis.
func drivers(t *testing.T, c *ilosim.Chassis) map[string]ilo.Power {
	t.Helper()
	login, _ := serve(t, c)
	manager := &ilo.Manager{Login: login}
	t.Cleanup(func() { manager.Close() })
	slot := ilo.Slot{Cartridge: 2, Node: 1}
	return map[string]ilo.Power{
		"ssh":  ilo.SlotPower{Runner: manager, Slot: slot},
		"rest": ilo.NodeSystem(site(t, c.Handler(ilosim.Href), c), slot),
	}
}

// TestPower: each driver, against each thing that nodes do.
func TestPower(t *testing.T) {
	for _, tt := range []struct {
		name    string
		action  ilo.Action
		set     func(*ilosim.Chassis)
		want    ilo.State
		err     string
		actions string // what happened to the node
	}{
		{"status", ilo.Status, nil, ilo.Off, "", ""},
		{"on", ilo.SwitchOn, nil, ilo.On, "", "on"},
		{"off, when it is", ilo.SwitchOff, nil, ilo.Off, "", ""},
		{"cycle", ilo.Cycle, nil, ilo.On, "", "on"},
		{"pxe", ilo.PXE, nil, ilo.On, "", "on-pxe"},
		{"bootonce is lost when it is switched off", ilo.PXE, func(c *ilosim.Chassis) { c.Inject(ilosim.BootOnceLost, ilosim.Always) }, ilo.On, "", "on-pxe"},
		{"bootonce is not taken", ilo.PXE, func(c *ilosim.Chassis) { c.Inject(ilosim.BootOnceIgnored, ilosim.Always) }, ilo.Off, "boots? from the network once", ""},
		{"a system that does not listen", ilo.Cycle, func(c *ilosim.Chassis) { c.Inject(ilosim.SoftOffIgnored, ilosim.Always) }, ilo.On, "", "on"},
		{"on is not heard at first", ilo.SwitchOn, func(c *ilosim.Chassis) { c.Inject(ilosim.OnIgnored, 1) }, ilo.On, "", "on"},
		{"never on", ilo.SwitchOn, func(c *ilosim.Chassis) { c.Inject(ilosim.OnIgnored, ilosim.Always) }, ilo.Off, "it is off after 1s, and should be on", ""},
		{"unavailable", ilo.PXE, func(c *ilosim.Chassis) { c.HoldPower("c2n1", "Unavailable") }, ilo.Unavailable, "it is unavailable after 1s, and should be off", ""},
		{"a word that nobody knows", ilo.PXE, func(c *ilosim.Chassis) { c.HoldPower("c2n1", "Dreaming") }, ilo.Unknown, "it is unknown after 1s, and should be off", ""},
		{"an empty slot", ilo.Status, func(c *ilosim.Chassis) { c.Remove("c2n1") }, ilo.Unknown, "Invalid node|404", ""},
		{"only PXE in upper case", ilo.PXE, func(c *ilosim.Chassis) { c.Inject(ilosim.OnlyUpperPXE, ilosim.Always) }, ilo.On, "", "on-pxe"},
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
				s := ilo.Switcher{Poll: 10 * time.Millisecond, Wait: time.Second}
				r := s.Do(t.Context(), tt.action, []ilo.Machine{{Name: "c2n1", Power: drivers(t, c)[driver]}})[0]
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

// matches tells whether text has one of the words of pattern, in which "?" makes
// the letter before it optional.
func matches(pattern, text string) bool {
	return slices.ContainsFunc(strings.Split(pattern, "|"), func(p string) bool {
		i := strings.IndexByte(p, '?')
		if i < 0 {
			return strings.Contains(text, p)
		}
		return strings.Contains(text, p[:i]+p[i+1:]) || strings.Contains(text, p[:i-1]+p[i+1:])
	})
}

// TestPXEOfRunningNodes: forty-five nodes that run are off, and on from the
// network, with one login.
func TestPXEOfRunningNodes(t *testing.T) {
	c := ilosim.New(1, 45, 1, 2)
	c.PowerDelay = 30 * time.Millisecond
	c.Inject(ilosim.BootOnceLost, ilosim.Always)
	pxe := map[string]int{}
	login, _ := serve(t, c)
	manager := &ilo.Manager{Login: login}
	defer manager.Close()
	var machines []ilo.Machine
	for x := 1; x <= 45; x++ {
		slot := ilo.Slot{Cartridge: x, Node: 1}
		machines = append(machines, ilo.Machine{Name: slot.String(), Power: ilo.SlotPower{Runner: manager, Slot: slot}})
	}
	told := 0
	s := ilo.Switcher{Poll: 10 * time.Millisecond, Wait: 10 * time.Second, Tell: func(string, string) { told++ }}
	for _, r := range s.Do(t.Context(), ilo.SwitchOn, machines) {
		if r.State != ilo.On || r.Err != nil {
			t.Fatal(r)
		}
	}
	c.OnAction = func(slot string, a ilosim.Action) {
		if a.On && a.PXE {
			pxe[slot]++
		}
	}
	for _, r := range s.Do(t.Context(), ilo.PXE, machines) {
		if r.State != ilo.On || r.Err != nil || pxe[r.Name] != 1 {
			t.Errorf("%+v, booted from the network %d times, want on, once", r, pxe[r.Name])
		}
	}
	if c.Logins() != 1 || told < 4*45 {
		t.Errorf("got %d logins and %d commands told of, want 1 and 180", c.Logins(), told)
	}
}

// TestManagerReconnects: a connection that breaks while somebody waits is made
// anew; a refused login is not.
func TestManagerReconnects(t *testing.T) {
	c := ilosim.New(1, 1, 1, 1)
	login, server := serve(t, c)
	m := &ilo.Manager{Login: login}
	defer m.Close()
	p := ilo.SlotPower{Runner: m, Slot: ilo.Slot{Cartridge: 1, Node: 1}}
	if s, err := p.State(t.Context()); s != ilo.Off || err != nil {
		t.Fatal(s, err)
	}
	server.Close()
	again, err := c.ServeSSH(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	m.Login.HostKey = again.Fingerprint
	if s, err := p.State(t.Context()); s != ilo.Off || err != nil {
		t.Errorf("after the connection broke: got %s, %v", s, err)
	}
	bad := &ilo.Manager{Login: m.Login}
	bad.Login.Password = "wrong"
	before := c.Logins()
	for range 3 {
		if _, err := (ilo.SlotPower{Runner: bad, Slot: p.Slot}).State(t.Context()); !errors.Is(err, ilo.ErrRefused) {
			t.Errorf("got %v, want %v", err, ilo.ErrRefused)
		}
	}
	if got := c.Logins() - before; got != 1 {
		t.Errorf("got %d logins with a wrong password, want 1", got)
	}
}

// TestRedfishPower: iLO 4 to 6.
func TestRedfishPower(t *testing.T) {
	for gen := 4; gen <= 6; gen++ {
		sim := ilosim.NewILO(gen, 1)
		c := sim.Chassis()
		c.PowerDelay = 20 * time.Millisecond
		var last ilosim.Action
		c.OnAction = func(_ string, a ilosim.Action) { last = a }
		s := ilo.Switcher{Poll: 5 * time.Millisecond, Wait: time.Second}
		power := ilo.ServerSystem(site(t, sim.Handler(), c))
		for range 2 {
			r := s.Do(t.Context(), ilo.PXE, []ilo.Machine{{Name: "a", Power: power}})[0]
			if r.Err != nil || r.State != ilo.On || !last.PXE {
				t.Errorf("iLO %d: got %+v, PXE %t", gen, r, last.PXE)
			}
		}
	}
}

// program writes a shell script and returns its path.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestIPMI: the words that ipmitool gets, and where the password is not.
func TestIPMI(t *testing.T) {
	dir := t.TempDir()
	tool := program(t, `
echo "$*" >> `+dir+`/log
[ "$IPMI_PASSWORD" = "correct horse" ] || { echo "wrong: $IPMI_PASSWORD" >&2; exit 1; }
case "$*" in
*"power status") echo "Chassis Power is $(cat `+dir+`/power)";;
*"power on") echo on > `+dir+`/power;;
*"power off") echo off > `+dir+`/power;;
*"bootparam get 5") echo "   - Boot Device Selector : Force PXE";;
esac
`)
	if err := os.WriteFile(dir+"/power", []byte("on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := ilo.IPMIPower{Program: tool, Host: "bmc1", User: "admin", Password: "correct horse", Options: []string{"-L", "OPERATOR"}}
	s := ilo.Switcher{Poll: time.Millisecond, Wait: 5 * time.Second}
	r := s.Do(t.Context(), ilo.PXE, []ilo.Machine{{Name: "bmc1", Power: p}})[0]
	if r.Err != nil || r.State != ilo.On {
		t.Fatalf("got %+v", r)
	}
	log, err := os.ReadFile(dir + "/log")
	const all = "-I lanplus -H bmc1 -U admin -E -L OPERATOR chassis "
	want := all + strings.Join([]string{"power status", "power off", "power status", "bootdev pxe", "bootparam get 5", "power on", "power status"}, "\n"+all) + "\n"
	if err != nil || string(log) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, log, want)
	}
	p.Password = "wrong horse"
	if _, err := p.State(t.Context()); err == nil || strings.Contains(err.Error(), "horse") || !strings.Contains(err.Error(), "[secret]") {
		t.Errorf("got %v, want the error without the password", err)
	}
}

// TestHook: the operator's own program.
func TestHook(t *testing.T) {
	dir := t.TempDir()
	hook := program(t, `
case $1 in
status) cat `+dir+`/$2 || echo dreaming;;
pxe) echo pxe >> `+dir+`/log;;
on|off) echo $1 > `+dir+`/$2; echo $1 >> `+dir+`/log;;
esac
exit 0
`)
	s := ilo.Switcher{Poll: time.Millisecond, Wait: 5 * time.Second}
	r := s.Do(t.Context(), ilo.PXE, []ilo.Machine{{Name: "n1", Power: ilo.HookPower{Program: hook, Name: "n1"}}})[0]
	log, _ := os.ReadFile(dir + "/log")
	if r.Err != nil || r.State != ilo.On || string(log) != "off\npxe\non\n" {
		t.Errorf("got %+v, %q", r, log)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"fails", "echo no such machine >&2; exit 3", "exit status 3: no such machine"},
		{"hangs", "sleep 60", "did not end within"},
	} {
		p := ilo.HookPower{Program: program(t, tt.text), Name: "n1", Timeout: 300 * time.Millisecond}
		if _, err := p.State(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := (ilo.HookPower{Program: dir + "/nothing", Name: "n1"}).State(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no program: got %v", err)
	}
}

// stubborn is a machine that is told things, and answers one state after the
// other.
type stubborn struct {
	states []ilo.State
	err    error // of every second question
	asked  int
	told   []string
}

func (p *stubborn) State(context.Context) (ilo.State, error) {
	p.asked++
	if p.err != nil && p.asked%2 == 0 {
		return ilo.Unknown, p.err
	}
	s := p.states[0]
	if len(p.states) > 1 {
		p.states = p.states[1:]
	}
	return s, nil
}
func (p *stubborn) On(context.Context) error      { p.told = append(p.told, "on"); return nil }
func (p *stubborn) Off(context.Context) error     { p.told = append(p.told, "off"); return nil }
func (p *stubborn) PXEOnce(context.Context) error { p.told = append(p.told, "pxe"); return nil }

// TestOrder: off, wait for off, boot source, on, wait for on; what is not known
// is waited for; what does not come in time is said, and nothing more is done.
func TestOrder(t *testing.T) {
	list := func(words string) (out []ilo.State) {
		for w := range strings.FieldsSeq(words) {
			out = append(out, ilo.State(w))
		}
		return out
	}
	for _, tt := range []struct {
		name, states string
		err          error
		told, want   string
		took         time.Duration
	}{
		{"by the book", "on powering-off off powering-on on", nil, "[off pxe on]", "on", 20 * time.Second},
		{"off already", "off on", nil, "[pxe on]", "on", 5 * time.Second},
		{"unknown is not off", "on unknown unavailable unknown off on", nil, "[off pxe on]", "on", 25 * time.Second},
		{"told again when it does not hear", "on on on on off on", nil, "[off off pxe on]", "on", 25 * time.Second},
		{"40 s to be on", "off powering-on powering-on powering-on powering-on powering-on powering-on powering-on on", nil, "[pxe on]", "on", 40 * time.Second},
		{"out of reach now and then", "on powering-off off powering-on on", ilo.ErrUnreachable, "[off pxe on]", "on", 40 * time.Second},
		{"never off", "unavailable", nil, "[off]", "it is unavailable after 2m0s, and should be off", 125 * time.Second},
		{"refused meanwhile", "on powering-off", ilo.ErrRefused, "[off]", "login refused", 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &stubborn{states: list(tt.states), err: tt.err}
				begin := time.Now()
				r := ilo.Switcher{}.Do(t.Context(), ilo.PXE, []ilo.Machine{{Name: "n1", Power: p}})[0]
				got := string(r.State)
				if r.Err != nil {
					got = r.Error
				}
				if fmt.Sprint(p.told) != tt.told || got != tt.want || time.Since(begin) != tt.took {
					t.Errorf("got %v, %s after %s, want %s, %s after %s", p.told, got, time.Since(begin), tt.told, tt.want, tt.took)
				}
			})
		})
	}
}

// TestSlots: which nodes there are to switch.
func TestSlots(t *testing.T) {
	c := ilosim.New(1, 3, 2, 1)
	c.Remove("c2n2")
	c.Put(ilosim.Node{Cartridge: 3, Number: 1, Empty: true})
	login, _ := serve(t, c)
	m := &ilo.Manager{Login: login}
	defer m.Close()
	const want = "[c1n1 c1n2 c2n1 c3n2]"
	if got, err := ilo.Slots(t.Context(), m); err != nil || fmt.Sprint(got) != want {
		t.Errorf("ssh: got %v, %v, want %s", got, err, want)
	}
	if got, err := ilo.SlotsREST(t.Context(), site(t, c.Handler(ilosim.OData), c)); err != nil || fmt.Sprint(got) != want {
		t.Errorf("rest: got %v, %v, want %s", got, err, want)
	}
	c.Inject(ilosim.UnknownList, 1)
	if _, err := ilo.Slots(t.Context(), m); !errors.Is(err, ilo.ErrUnreadable) {
		t.Errorf("an unknown command: got %v", err)
	}
	c.Inject(ilosim.NoRights, 1)
	if _, err := ilo.Slots(t.Context(), m); !errors.Is(err, ilo.ErrRefused) {
		t.Errorf("no rights: got %v", err)
	}
}
