package attack_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"drover/e2e/attack"
)

// TestWireFuzz sends mutated packets of recorded clients to the running server, in each
// mode, and lets a good client get its address meanwhile. -long sends a million.
func TestWireFuzz(t *testing.T) {
	seeds, err := attack.Recorded("../../dhcp/testdata/recorded")
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t)
	for _, mode := range []string{"full", "proxy"} {
		t.Run(mode, func(t *testing.T) {
			s := l.Serve(t, fmt.Sprintf(attack.Farm, ", dhcp: "+mode), 1<<20)
			count := 10_000
			if *long {
				count = 500_000
			}
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			m := &attack.Mutator{Rand: rand.New(rand.NewPCG(1, seed)), Seeds: seeds}
			type result struct {
				sent int
				err  error
			}
			ended := make(chan result, 1)
			fuzzing := make(chan struct{})
			go func() {
				defer close(fuzzing)
				sent, err := l.Fuzz(m, count, 4000, t.Context().Done())
				ended <- result{sent, err}
			}()
			machine, served := m2(l), 0
			for running := true; running && mode == "full"; {
				machine.Lease(t, served%2 == 0)
				if machine.Address != attack.MachineIP {
					t.Errorf("m2 got address %s", machine.Address)
				}
				served++
				select {
				case <-fuzzing:
					running = false
				default:
				}
			}
			r := <-ended
			if r.err != nil || r.sent != count {
				t.Errorf("sent %d of %d packets: %v", r.sent, count, r.err)
			}
			if err := attack.Health(t.Context(), l.Net); err != nil {
				t.Error(err)
			}
			if mode == "full" {
				boots(t, machine)
			}
			t.Logf("%d packets; m2 got its address %d times meanwhile", r.sent, served)
			s.WantSmall()
			s.Stop()
			s.Wild = true
		})
	}
}

// TestMutatorReaches proves that the mutations of [TestWireFuzz] differ.
func TestMutatorReaches(t *testing.T) {
	seeds, err := attack.Recorded("../../dhcp/testdata/recorded")
	if err != nil {
		t.Fatal(err)
	}
	m := &attack.Mutator{Rand: rand.New(rand.NewPCG(1, 2)), Seeds: seeds}
	all := map[string]bool{}
	short := 0
	for range 2000 {
		b := m.Next()
		all[string(b)] = true
		if len(b) < 240 {
			short++
		}
	}
	if len(all) < 1900 || short == 0 || short > 1000 {
		t.Errorf("got %d different packets of 2000, %d of them cut off", len(all), short)
	}
}
