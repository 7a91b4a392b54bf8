package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools"
	"drover/pools/ilo/ilosim"
)

// TestMoonshotToReady imports three cartridges from a chassis that is not there,
// and switches them on from the network: the chassis then starts machines, which
// become Ready in their cluster by the names of their slots.
func TestMoonshotToReady(t *testing.T) {
	b := build(t)
	s := open(t, b, site.Config{Name: "drover-e2e-moonshot", Farm: "testdata/moonshot.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()

	r := &chassis{site: s, guests: map[string]*lab.Guest{}}
	c := ilosim.New(1, 3, 1, 2)
	c.Profile, c.PowerDelay, c.OnAction = ilosim.Legacy14, 2*time.Second, r.action
	c.Break(ilosim.BootOnceLost, ilosim.Always)
	l, err := s.Listen("tcp", "127.0.0.1:2222")
	if err != nil {
		t.Fatal(err)
	}
	manager, err := c.ServeSSHOn(l)
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	pass := filepath.Join(s.Dir, "ilo.pass")
	if err := os.WriteFile(pass, []byte(c.Password), 0o600); err != nil {
		t.Fatal(err)
	}
	login := []string{"--chassis", "m1=" + manager.Addr, "--legacy", "--password-file", pass, "--known-hosts", filepath.Join(s.Dir, "known_hosts")}
	drover := func(args ...string) {
		t.Helper()
		out, err := s.Run(ctx, b.Drover, append(args, login...)...)
		t.Logf("drover %s\n%s", strings.Join(args, " "), out)
		if err != nil {
			t.Fatal(err)
		}
	}
	drover("import", "moonshot", "--pool", "compute", "--ip-template", "10.77.0.{{add 30 .Cartridge}}",
		"--apply", "--token-file", s.Drover.TokenFile())
	drover("power", "pxe", "all", "--poll", "1s")

	var added []pools.NodeInfo
	if err := s.Drover.Call(ctx, "GET", "/api/v1/nodes", nil, &added); err != nil {
		t.Fatal(err)
	}
	if len(added) != 3 {
		t.Fatalf("got nodes %v, want 3", added)
	}
	for _, n := range added {
		g := r.guest(strings.TrimPrefix(n.Name, "m1"))
		if g == nil {
			t.Fatalf("%s was not started from the network", n.Name)
		}
		defer story(t, s, g)
		mac := n.MACs[0].String()
		plan, err := s.Expect(mac, n.PoolNode)
		if err != nil {
			t.Fatal(err)
		}
		until(ctx, t, n.Name+" has joined", func() (bool, error) { return reached(bootOf(ctx, t, s, mac), pools.StepJoined), nil })
		until(ctx, t, n.Name+" is Ready and runs a pod", func() (bool, error) {
			_, err := s.Look(ctx, plan)
			return err == nil, err
		})
		t.Logf("%.1f s after power-on", time.Since(g.Started).Seconds())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.errs...); err != nil {
		t.Error(err)
	}
	if got := c.Logins(); got != 2 {
		t.Errorf("got %d logins, want one for each command", got)
	}
}

// chassis starts and stops machines as the manager of a chassis does.
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

func (c *chassis) guest(slot string) *lab.Guest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.guests[slot]
}
