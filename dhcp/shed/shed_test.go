package shed_test

import (
	"context"
	"testing"

	"drover/dhcp/shed"
	"drover/e2e/fixture"
)

// TestShedder: the share that passes falls while the queue overflows, never to nothing,
// and is whole again some time after. A backlog without an overflow changes nothing.
func TestShedder(t *testing.T) {
	const flood = 30
	var shares []uint32
	var s shed.Shedder
	s.Set = func(share uint32) error {
		if shares = append(shares, share); len(shares) < flood {
			s.Overflow()
		}
		return nil
	}
	for range 200 {
		if s.Read(true) {
			t.Fatal("it sheds although the queue has room")
		}
	}
	s.Overflow()
	if s.Read(false) {
		t.Fatal("it sheds although the socket is empty")
	}
	began := 0
	for range 200 {
		if s.Read(true) {
			began++
		}
	}
	if began != 1 {
		t.Fatalf("began %d times", began)
	}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	smallest := shares[flood-1]
	if smallest == 0 || smallest > shed.All/32 || shares[0] < shed.All/2 || shares[len(shares)-1] != shed.All {
		t.Errorf("got shares %d", shares)
	}
	fixture.Eventually(t, "the next backlog counts", func() bool { s.Overflow(); return s.Read(true) })
}
