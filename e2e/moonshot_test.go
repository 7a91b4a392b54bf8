package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/ilosim"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools"
	"drover/pools/boots"
)

// TestMoonshotToReady runs three commands of an operator: they import three cartridges
// from a simulated chassis, boot them from the network, and wait until they are Ready in
// their cluster under the names of their slots. The chassis starts virtual machines.
func TestMoonshotToReady(t *testing.T) {
	soak(t)
	b := build(t)
	s := open(t, b, site.Config{Name: "drover-e2e-moonshot", Farm: "testdata/moonshot.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()

	r := &chassis{site: s, guests: map[string]*lab.Guest{}}
	c := r.manager(t)
	const commands = `drover import moonshot m1 -c $CONFIG --apply --known-hosts $STATE/known_hosts &&
drover power pxe chassis=m1 -y --poll 1s &&
drover boot watch m1c1n1 m1c2n1 m1c3n1`
	out, err := s.Run(ctx, "env", "PATH="+filepath.Dir(b.Drover)+":"+os.Getenv("PATH"),
		"CONFIG="+filepath.Join(s.Dir, "drover.yaml"), "STATE="+s.Drover.State, "DROVER_TOKEN_FILE="+s.Drover.TokenFile(),
		"sh", "-c", commands)
	t.Logf("%s\n%s", commands, out)
	for _, g := range r.all() {
		defer story(t, s, g)
	}
	if err != nil {
		t.Fatal(err)
	}

	var added []pools.NodeInfo
	if err := s.Drover.Call(ctx, "GET", "/api/v1/nodes", nil, &added); err != nil {
		t.Fatal(err)
	}
	if len(added) != 3 {
		t.Fatalf("got nodes %v, want 3", added)
	}
	for _, n := range added {
		if want := "chassis m1 " + strings.TrimPrefix(n.Name, "m1"); n.Source.Position() != want {
			t.Errorf("%s is from %q, want %q", n.Name, n.Source.Position(), want)
		}
		wantReady(ctx, t, s, n)
	}
	var audit []pools.AuditEntry
	if err := s.Drover.Call(ctx, "GET", "/api/v1/audit?node=m1c2n1", nil, &audit); err != nil {
		t.Fatal(err)
	}
	if len(audit) != 3 || audit[0].Action != "power pxe" || audit[0].Result != "on" {
		t.Errorf("the audit has %v", audit)
	}
	if err := r.err(); err != nil {
		t.Error(err)
	}
	if got := c.Logins(); got != 2 {
		t.Errorf("got %d logins, want one for import and one for power", got)
	}
}

// manager starts a simulated chassis of three cartridges, and writes its password.
func (c *chassis) manager(t *testing.T) *ilosim.Chassis {
	t.Helper()
	sim := ilosim.New(1, 3, 1, 2)
	sim.Profile, sim.PowerDelay, sim.OnAction = ilosim.Legacy14, 2*time.Second, c.action
	sim.Inject(ilosim.BootOnceLost, ilosim.Always)
	l, err := c.site.Listen("tcp", "127.0.0.1:2222") // the address in testdata/moonshot.yaml
	if err != nil {
		t.Fatal(err)
	}
	manager, err := sim.ServeSSHOn(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	if err := os.WriteFile(filepath.Join(c.site.Dir, "ilo.pass"), []byte(sim.Password), 0o600); err != nil {
		t.Fatal(err)
	}
	return sim
}

// wantReady fails the test unless an imported node is Ready and runs a pod.
func wantReady(ctx context.Context, t *testing.T, s *site.Site, n pools.NodeInfo) {
	t.Helper()
	mac := n.MACs[0].String()
	plan, err := s.Expect(mac, n.PoolNode)
	if err != nil {
		t.Fatal(err)
	}
	if !reached(bootOf(ctx, t, s, mac), boots.StepReady) {
		t.Errorf("%s is not Ready, and watch says that it is", n.Name)
	}
	fixture.Until(ctx, t, n.Name+" is Ready and runs a pod", func() (bool, error) {
		_, err := s.Look(ctx, plan)
		return err == nil, err
	})
}

// chassis starts and stops virtual machines for the simulated chassis.
type chassis struct {
	site *site.Site

	mu     sync.Mutex
	guests map[string]*lab.Guest // by slot
	errs   []error
}

func (c *chassis) action(slot string, a ilosim.Action) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.guests[slot]; g != nil {
		delete(c.guests, slot)
		c.errs = append(c.errs, g.PowerOff())
	}
	if !a.On || !a.PXE {
		return
	}
	var x, y int
	if _, err := fmt.Sscanf(slot, "c%dn%d", &x, &y); err != nil {
		c.errs = append(c.errs, err)
		return
	}
	var nics []lab.NIC
	for i := range 2 {
		nics = append(nics, lab.NIC{MAC: fmt.Sprintf("94:57:a5:01:%02x:%02x", x, (y-1)*8+i), Boot: i == 0, Dark: i == 1})
	}
	g, err := c.site.PowerOn(lab.Machine{Name: slot, NICs: nics})
	if err != nil {
		c.errs = append(c.errs, err)
		return
	}
	c.guests[slot] = g
}

func (c *chassis) all() []*lab.Guest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.guests))
}

func (c *chassis) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}
