package boots_test

import (
	"testing"
	"time"

	"drover/pools/boots"
)

// TestFormer: the data on a machine's disks is of the boot before that applied its config. A boot
// for another tenant that did not say how far it came leaves that open.
func TestFormer(t *testing.T) {
	type past struct {
		pool string
		last boots.Step
	}
	for _, tt := range []struct {
		name   string
		before []past
		want   string
	}{
		{"no boot before", nil, ""},
		{"the same tenant", []past{{"a", boots.StepConfig}}, "pool a"},
		{"another", []past{{"a", boots.StepConfig}, {"b", boots.StepOnline}}, "pool b"},
		{"its own boots have failed since", []past{{"a", boots.StepConfig}, {"a", boots.StepImage}, {"a", boots.StepInit}}, "pool a"},
		{"they failed, and another's was before", []past{{"b", boots.StepConfig}, {"a", boots.StepImage}}, "pool b"},
		{"another's is not known to have applied its config", []past{{"a", boots.StepConfig}, {"b", boots.StepNetwork}}, ""},
		{"nor one that claimed its boot", []past{{"a", boots.StepConfig}, {"b", boots.StepWipe}, {"a", boots.StepInit}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, c := openBoots(t)
			nonce := ""
			for i, boot := range append(tt.before, past{"a", boots.StepInit}) {
				p := declared(1)
				p.Pool = boot.pool
				b.Discover(p, c.Now())
				var err error
				if nonce, err = b.Issue(p); err != nil {
					t.Fatal(err)
				}
				step(t, b, nonce, boots.StepInit)
				if i%2 == 0 {
					if err := b.Claim(mac(1), nonce, []byte{byte(i)}); err != nil {
						t.Fatal(err)
					}
				}
				step(t, b, nonce, boot.last)
				c.advance(time.Hour)
			}
			if got := b.Former(mac(1), nonce); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	b, _ := openBoots(t)
	if got := b.Former(mac(1), "0123456789abcdef"); got != "" {
		t.Errorf("without a boot: got %q", got)
	}
}

// TestWipeGoesOn: an erase reports how far it is in one item of the timeline.
func TestWipeGoesOn(t *testing.T) {
	b, c := openBoots(t)
	nonce := issue(t, b)
	for _, detail := range []string{"erasing", "erasing, 50 %", "erasing, 50 %", "erased"} {
		c.advance(time.Minute)
		if err := b.Step(mac(1), nonce, boots.Event{Step: boots.StepWipe, Detail: detail}); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := b.Current(mac(1))
	if got, ok := r.Reached(boots.StepWipe); !ok || got.Detail != "erased" || len(r.Steps) != 2 || got.Time != c.Now().UTC() {
		t.Errorf("got %+v", r.Steps)
	}
}
