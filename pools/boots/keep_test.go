package boots_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/pools/boots"
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
	var nonces []string
	for range 13 {
		nonces = append(nonces, issue(t, b))
		step(t, b, "", boots.StepKernel)
		c.advance(time.Hour)
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
	if err := b.Claim(mac(1), nonces[12], []byte("key")); err != nil {
		t.Errorf("DISCOVERs pushed out the boot whose nonce is in force: %v", err)
	}
}

// A flood of DISCOVERs from invented MACs must neither fill the memory nor evict the
// boots that are under way.
func TestFloodOfMachines(t *testing.T) {
	b, c := openBoots(t)
	nonce := issue(t, b)
	for n := range 20000 {
		b.Discover(plan(n+2), c.Now())
	}
	if got := len(b.List()); got != 8001 {
		t.Errorf("got %d boots, want 8000 and the one under way", got)
	}
	if err := b.Claim(mac(1), nonce, []byte("key")); err != nil {
		t.Errorf("the flood pushed out the boot under way: %v", err)
	}
	if err := b.Flush(); err != nil {
		t.Error(err)
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
