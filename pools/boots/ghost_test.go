package boots_test

import (
	"testing"
	"time"

	"drover/pools/boots"
)

// A boot that goes on at one server is not stuck at the other one, in whichever step it changed.
func TestNoGhost(t *testing.T) {
	stuck := func(p *pair, s *boots.Table) bool {
		for _, r := range boots.MarkStuck(s.List(), p.Now()) {
			if r.Stuck != nil {
				return true
			}
		}
		return false
	}
	for _, tt := range []struct {
		name string
		boot func(t *testing.T, p *pair)
	}{
		{"all of it at a", func(t *testing.T, p *pair) {
			if err := claimAt(p.a, p.script(t), "key"); err != nil {
				t.Fatal(err)
			}
		}},
		{"config at b", func(t *testing.T, p *pair) {
			if err := claimAt(p.b, p.script(t), "key"); err != nil {
				t.Fatal(err)
			}
		}},
		{"script at b", func(t *testing.T, p *pair) {
			for _, s := range []*boots.Table{p.a, p.b} {
				s.Discover(declared(1), p.Now())
			}
			step(t, p.a, "", boots.StepLoader)
			nonce, err := p.b.Issue(declared(1))
			if err == nil {
				err = claimAt(p.b, nonce, "key")
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t)
			tt.boot(t, p)
			if len(p.a.List()) != 1 || len(p.b.List()) != 1 {
				t.Errorf("boots %+v and %+v, want one of each", p.a.List(), p.b.List())
			}
			p.advance(time.Hour / 2)
			if a, b := stuck(p, p.a), stuck(p, p.b); a == b { // neither is stuck where it went on: it has no end in this test
				t.Errorf("stuck at a %t, at b %t, want one", a, b)
			}
		})
	}
	t.Run("it chose a", func(t *testing.T) {
		p := newPair(t)
		p.script(t)
		p.b.Left(mac(1))
		p.advance(time.Hour / 2)
		if !stuck(p, p.a) || stuck(p, p.b) {
			t.Error("want it stuck at a alone")
		}
		step(t, p.b, "", boots.StepKernel)
		p.advance(time.Hour / 2)
		if !stuck(p, p.b) {
			t.Error("it asked b later, and is not stuck there")
		}
	})
	t.Run("tentative", func(t *testing.T) {
		p := newPair(t)
		p.b.Sharing.Tentative = true
		p.script(t)
		p.advance(time.Hour / 2)
		if stuck(p, p.b) {
			t.Error("stuck where it never asked for a file")
		}
	})
	t.Run("one server", func(t *testing.T) {
		b, c := openBoots(t)
		b.Discover(declared(1), c.Now())
		b.Left(mac(1))
		if r, _ := b.Current(mac(1)); r.Elsewhere {
			t.Error("there is no other server")
		}
	})
}
