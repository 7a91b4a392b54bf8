package boots_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/pools/boots"
	"drover/pools/resolve"
)

func TestATimelineIsBounded(t *testing.T) {
	b, _ := openBoots(t)
	nonce := issue(t, b)
	step(t, b, nonce, boots.StepInit)
	for i := range 200 {
		e := boots.Event{Step: boots.StepImage, Error: fmt.Sprintf("attempt %d %s", i, strings.Repeat("ä", 10000))}
		if err := b.Step(mac(1), nonce, e); err != nil {
			t.Fatal(err)
		}
	}
	step(t, b, nonce, boots.StepImage, boots.StepConfig)
	r, _ := b.Current(mac(1))
	if len(r.Steps) != 64 {
		t.Errorf("got %d steps, want 64", len(r.Steps))
	}
	if first, last := r.Steps[0].Step, r.Steps[63].Step; first != boots.StepScript || last != boots.StepConfig {
		t.Errorf("got %s to %s, want script to config: errors pushed steps out", first, last)
	}
	if got := r.Steps[2].Error; !strings.HasPrefix(got, "attempt 140 ä") || len(got) > 500 || !strings.HasSuffix(got, "ä…") {
		t.Errorf("oldest error kept is %.40q… of %d bytes", got, len(got))
	}
}

func TestOldBootsAreForgotten(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	for range 13 {
		issue(t, b)
		step(t, b, "", boots.StepKernel)
		c.advance(time.Hour)
	}
	newest := issue(t, b)
	if err := b.Claim(mac(1), newest, []byte("key")); err != nil {
		t.Fatal(err)
	}
	for range 15 { // power cycles that end before the script
		b.Discover(plan(1), c.advance(time.Hour))
	}
	b = d.reopen(t, b, c)
	list := b.List()
	if len(list) != 10 {
		t.Fatalf("got %d boots after a restart, want 10", len(list))
	}
	if !slices.IsSortedFunc(list, func(x, y boots.Record) int { return y.Started.Compare(x.Started) }) {
		t.Error("not the newest first")
	}
	if got, want := list[0].Started, c.Now(); !got.Equal(want) {
		t.Errorf("newest is of %s, want %s", got, want)
	}
	if err := b.Claim(mac(1), newest, []byte("key")); err != nil {
		t.Errorf("DISCOVERs pushed out the boot whose nonce is in force: %v", err)
	}
}

// A flood of DISCOVERs from invented MACs must neither fill the memory nor evict the
// boots that are under way, nor those of declared machines, however they came to be
// declared. Finding H5: 8000 invented MACs evicted every boot without a script.
func TestFloodOfMachines(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	b := d.open(t, c)
	b.NeedDiscover = true
	const machines = 100_000 // declared machines and lobby machines have the numbers above
	b.Discover(plan(machines+1), c.Now())
	underWay, err := b.Issue(plan(machines + 1))
	if err != nil {
		t.Fatal(err)
	}
	b.Discover(plan(machines+2), c.Now())
	if err := b.Step(mac(machines+2), "", boots.Event{Step: boots.StepLoader}); err != nil {
		t.Fatal(err)
	}
	b.Discover(plan(machines+5), c.Now())
	b.Lease(mac(machines + 5))
	b.Discover(declared(machines+3), c.Now())
	b.Discover(plan(machines+4), c.Now())
	b.Discover(declared(machines+4), c.Now()) // an operator declared it meanwhile
	check := func(when string) {
		t.Helper()
		if got := len(b.List()); got != 4096+5 {
			t.Errorf("%s: got %d boots, want 4096 and the five", when, got)
		}
		if err := b.Claim(mac(machines+1), underWay, []byte("key")); err != nil {
			t.Errorf("%s: a boot under way is gone: %v", when, err)
		}
		for _, p := range []*resolve.Plan{plan(machines + 2), plan(machines + 5), declared(machines + 3), declared(machines + 4)} {
			if _, err := b.Issue(p); err != nil {
				t.Errorf("%s: %s gets no script: %v", when, p.Node, err)
			}
		}
	}
	for n := range 20000 {
		b.Discover(plan(n), c.Now())
	}
	check("after the flood")
	if err := b.Flush(); err != nil {
		t.Error(err)
	}
	if len(d.values) != 4096+5 {
		t.Errorf("%d boots are stored, want 4096 and the five", len(d.values))
	}
	b = d.reopen(t, b, c)
	b.NeedDiscover = true
	for n := range 20000 {
		b.Discover(plan(20000+n), c.Now())
	}
	check("after a flood that follows a restart")
}

// The file has more boots of unknown machines than there is room for.
func TestTooManyStored(t *testing.T) {
	d, c := newDisk(), &clock{now: epoch}
	for n := range 6000 {
		id := fmt.Sprintf("20260301T120000.%06d-%s", n, mac(n).Hex())
		d.values[id] = fmt.Appendf(nil, `{"record":{"id":%q,"mac":%q,"node":%q,"unknown":true,"started":"2026-03-01T12:00:00Z"}}`, id, mac(n), plan(n).Node)
	}
	b := d.open(t, c)
	if err := b.Flush(); err != nil {
		t.Error(err)
	}
	if got := b.List(); len(got) != 4096 || len(d.values) != 4096 || !got[0].Unknown {
		t.Errorf("%d boots are in the table and %d stored, want 4096; the first: %+v", len(got), len(d.values), got[0])
	}
}

func TestOnStep(t *testing.T) {
	b, c := openBoots(t)
	var got []string
	b.OnStep = func(r boots.Record, s boots.StepTime) {
		got = append(got, fmt.Sprintf("%s %s%s %d", r.Node, s.Step, s.Error, len(r.Steps)))
	}
	b.Discover(plan(1), c.Now())
	b.Discover(plan(1), c.Now())
	nonce := issue(t, b)
	step(t, b, nonce, boots.StepInit, boots.StepInit)
	if err := b.Step(mac(1), nonce, boots.Event{Step: boots.StepImage, Error: "!"}); err != nil {
		t.Fatal(err)
	}
	name := plan(1).Node
	want := []string{name + " discover 1", name + " script 2", name + " init 3", name + " image! 4"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The result of List does not change while the boots go on.
func TestListIsASnapshot(t *testing.T) {
	b, _ := openBoots(t)
	nonce := issue(t, b)
	before := b.List()
	want := timeline(before[0])
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 200 {
			_ = b.Step(mac(1), nonce, boots.Event{Step: boots.StepImage, Error: fmt.Sprint(i)})
		}
	})
	for range 200 {
		for _, r := range b.List() {
			_ = timeline(r)
		}
	}
	wg.Wait()
	if got := timeline(before[0]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzStep(f *testing.F) {
	f.Add("image", "260 MB in 2.4 s", "")
	f.Add("config", "", "bad\x00 \xff\n")
	f.Fuzz(func(t *testing.T, name, detail, msg string) {
		b, _ := openBoots(t)
		nonce := issue(t, b)
		if err := b.Step(mac(1), nonce, boots.Event{Step: boots.Step(name), Detail: detail, Error: msg}); err != nil {
			return
		}
		r, _ := b.Current(mac(1))
		last := r.Steps[len(r.Steps)-1]
		if len(last.Detail) > 200 || len(last.Error) > 500 || strings.ContainsAny(last.Detail+last.Error, "\n\r\x00\x1b") {
			t.Errorf("kept %q, %q", last.Detail, last.Error)
		}
	})
}
