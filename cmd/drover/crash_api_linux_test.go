package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/client"
)

// TestKillAPI kills the server at random instants while clients add, change and remove
// nodes over the REST API. After each kill a new server has every change that was
// acknowledged; a change without an answer is there as a whole, or not at all.
func TestKillAPI(t *testing.T) {
	rounds, clients := fixture.Attack(15, 300), 10
	if testing.Short() {
		rounds = 5
	}
	s := newKilled(t)
	editors := make([]*editor, clients)
	for i := range editors {
		editors[i] = &editor{t: t, id: i, rand: rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano()))), nodes: inventory{}}
	}
	for range rounds {
		c := s.start()
		s.compare(c, editors)
		answers := make(chan struct{}, 1)
		var all sync.WaitGroup
		for _, e := range editors {
			all.Go(func() { e.edit(c, answers) })
		}
		ended := make(chan struct{})
		go func() { defer close(ended); all.Wait() }()
		for range rand.IntN(100) {
			select {
			case <-answers:
			case <-ended: // by errors
			}
		}
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		s.kill()
		<-ended
		if t.Failed() {
			t.FailNow()
		}
	}
	s.compare(s.start(), editors)
	acknowledged, open, made := 0, 0, 0
	for _, e := range editors {
		acknowledged, open, made = acknowledged+e.acknowledged, open+e.open, made+e.made
	}
	t.Logf("%d kills, %d changes acknowledged; of %d without an answer %d were made", rounds, acknowledged, open, made)
	if acknowledged < 10*rounds || open < rounds {
		t.Error("that was too little")
	}
}

// killed is a server process that is killed and started again. The state directory stays.
type killed struct {
	t             *testing.T
	dir, api, url string
	cmd           *exec.Cmd
}

func newKilled(t *testing.T) *killed {
	t.Helper()
	s := &killed{t: t, dir: t.TempDir(), api: freePort(t)}
	s.url = "http://" + s.api
	text := fmt.Sprintf(`server: {dhcp: "off", address: 10.28.0.2, http: %q, tftp: %q, api: %q}
subnets: [{cidr: 10.28.0.0/16}]
pools: [{name: web, image: debian-12}]
`, freePort(t), freePort(t), s.api)
	if err := os.WriteFile(filepath.Join(s.dir, "drover.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	linkDrover(t, s.dir)
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the server's log:\n%s", fixture.ReadFile(t, filepath.Join(s.dir, "log")))
		}
	})
	return s
}

// start starts the server, and returns a client of it when it answers.
func (s *killed) start() *client.Client {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(filepath.Join(s.dir, "drover"), "serve", "-c", filepath.Join(s.dir, "drover.yaml"), "--state", filepath.Join(s.dir, "state"))
	s.cmd.Stderr = log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	c := &client.Client{Base: s.url, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20}}}
	fixture.Retry(s.t, "an answer of the server", func() error {
		token, err := os.ReadFile(filepath.Join(s.dir, "state", "api.token"))
		if err == nil {
			c.Token = strings.TrimSpace(string(token))
			_, err = client.Get(s.t.Context(), c, client.Nodes, nil)
		}
		return err
	})
	return c
}

// kill ends the server with SIGKILL.
func (s *killed) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // it was killed
		s.cmd = nil
	}
}

// compare fails unless the server has the nodes that it acknowledged, and no half of a change.
func (s *killed) compare(c *client.Client, editors []*editor) {
	s.t.Helper()
	list, err := client.Get(s.t.Context(), c, client.Nodes, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	found := make([]inventory, len(editors))
	for i := range found {
		found[i] = inventory{}
	}
	for _, n := range list {
		var owner, number int
		if _, err := fmt.Sscanf(n.Name, "e%dn%d", &owner, &number); err != nil || owner >= len(editors) {
			s.t.Fatalf("nobody has added %q", n.Name)
		}
		found[owner][n.Name] = n.IP
	}
	for i, e := range editors {
		e.settle(found[i])
	}
}

// inventory is nodes with their addresses.
type inventory map[string]netip.Addr

// editor changes nodes of its own, one change after another.
type editor struct {
	t    *testing.T
	id   int
	rand *rand.Rand

	nodes inventory // acknowledged
	tried inventory // after a change that has no answer yet; nil: there is none

	acknowledged, open, made int
}

// settle compares the editor's nodes with those of a server that has started anew.
func (e *editor) settle(found inventory) {
	e.t.Helper()
	switch {
	case maps.Equal(found, e.nodes):
	case e.tried != nil && maps.Equal(found, e.tried):
		e.made++
	default:
		e.t.Errorf("client %d: acknowledged %v, last tried %v, found %v", e.id, e.nodes, e.tried, found)
	}
	e.nodes, e.tried = found, nil
}

// edit changes nodes until the server is gone.
func (e *editor) edit(c *client.Client, answers chan<- struct{}) {
	for {
		next := e.change()
		e.tried = next
		err := e.send(c, next)
		if _, gone := errors.AsType[*client.UnreachableError](err); gone {
			e.open++
			return
		}
		if err != nil {
			e.t.Errorf("client %d: %v", e.id, err)
			return
		}
		e.acknowledged++
		e.nodes, e.tried = next, nil
		select {
		case answers <- struct{}{}:
		default:
		}
	}
}

// change returns the nodes after another change: of one node, of two, or of two that swap
// their addresses.
func (e *editor) change() inventory {
	next := maps.Clone(e.nodes)
	touch := func() {
		name := fmt.Sprintf("e%dn%d", e.id, e.rand.IntN(12))
		if _, ok := next[name]; ok && e.rand.IntN(3) == 0 {
			delete(next, name)
			return
		}
		next[name] = e.free(next)
	}
	names := slices.Sorted(maps.Keys(next))
	switch e.rand.IntN(3) {
	case 0:
		touch()
	case 1:
		for range 5 {
			touch()
		}
	default:
		if len(names) < 2 {
			touch()
			break
		}
		a, b := names[0], names[1+e.rand.IntN(len(names)-1)]
		next[a], next[b] = next[b], next[a]
	}
	return next
}

// free returns an address of the editor's that no node has, neither before nor after.
func (e *editor) free(next inventory) netip.Addr {
	for {
		a := netip.AddrFrom4([4]byte{10, 28, byte(10 + e.id), byte(1 + e.rand.IntN(200))})
		used := func(nodes inventory) bool { return slices.Contains(slices.Collect(maps.Values(nodes)), a) }
		if !used(next) && !used(e.nodes) {
			return a
		}
	}
}

// send makes a change: of a single node by its own route, else as a batch.
func (e *editor) send(c *client.Client, next inventory) error {
	var changes []pools.NodeChange
	for i := range 12 {
		name := fmt.Sprintf("e%dn%d", e.id, i)
		before, was := e.nodes[name]
		after, is := next[name]
		if was == is && before == after {
			continue
		}
		node := func(ip netip.Addr) *pools.PoolNode {
			return &pools.PoolNode{Pool: "web", Node: pools.Node{Name: name, IP: ip, MACs: []pools.MAC{{2, 0, 0, 0, byte(e.id), byte(i)}}}}
		}
		var ch pools.NodeChange
		if was {
			ch.Old = node(before)
		}
		if is {
			ch.New = node(after)
		}
		changes = append(changes, ch)
	}
	var err error
	switch {
	case len(changes) == 0:
		_, err = client.Get(e.t.Context(), c, client.Nodes, nil)
	case len(changes) == 1 && changes[0].Old == nil:
		_, err = client.Send(e.t.Context(), c, client.AddNode, *changes[0].New)
	case len(changes) == 1 && changes[0].New == nil:
		_, err = client.Send(e.t.Context(), c, client.RemoveNode, client.None{}, changes[0].Old.Name)
	default:
		_, err = client.Send(e.t.Context(), c, client.ChangeNodes, pools.NodeBatch{Changes: changes})
	}
	return err
}
