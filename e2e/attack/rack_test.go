package attack_test

import (
	"fmt"
	"testing"
	"time"

	"drover/e2e/attack"
	"drover/e2e/netns"
)

// TestRackOfStrangers: a stranger on the wire and one in a rack behind dhcrelay send packets of both
// families in the names of router, relay agent, server and nodes. All machines of the rack renew
// afterwards, and boot. -long sends 100 000 packets of each family from each place.
func TestRackOfStrangers(t *testing.T) {
	seeds, err := attack.Recorded("../../dhcp/testdata/recorded")
	if err != nil {
		t.Fatal(err)
	}
	const machines = 20
	count := 3000
	if *long {
		count = 100_000
	}
	r := newLab(t).NewRack(t, machines)
	s := r.Serve(t, r.Config(), 1<<20)
	running := make([]*netns.Client, machines)
	for i, m := range r.Machines {
		running[i] = &netns.Client{Kind: netns.Udhcpc(), Namespace: m.Net, Device: "eth0", Dir: t.TempDir()}
		running[i].Start(t, "-t", "20", "-T", "1")
	}
	for i, c := range running {
		wantAddress(t, i, c.Wait(t, netns.Bound)["address"], fmt.Sprintf("10.88.1.%d", 10+i))
		r.Machines[i].Net.IP(t, "route", "replace", "default", "via", r.Machines[i].Via, "dev", "eth0")
	}

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	sent, err := r.Impostors(t.Context(), seed, seeds, count, 2000)
	if err != nil || sent != 4*count {
		t.Fatalf("sent %d of %d packets: %v", sent, 4*count, err)
	}

	for _, c := range running {
		c.Renew(t)
	}
	for i, c := range running {
		wantAddress(t, i, c.Wait(t, netns.Renewed)["address"], fmt.Sprintf("10.88.1.%d", 10+i))
		c.Kill()
	}
	for i, m := range r.Machines {
		boots(t, m)
		wantAddress(t, i, m.Address, fmt.Sprintf("10.88.1.%d", 10+i))
		address, err := m.Lease6(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantAddress(t, i, address.String(), fmt.Sprintf("fd00:88::1:%x", 10+i))
	}
	t.Logf("%d packets; %d machines renewed and booted", sent, machines)
	s.WantSmall()
}

func wantAddress(t *testing.T, i int, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("machine %d has address %s, want %s", i, got, want)
	}
}
