package server

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"drover/dhcp"
	"drover/httpboot/script"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
	"drover/tftp"
)

// discover is the result of a netboot DISCOVER of a machine that got an offer.
func discover(s *Server, mac pools.MAC) dhcp.Exchange {
	p := s.Machines.Resolve(resolve.Query{MAC: mac, Link: netip.MustParseAddr("10.28.0.2")})
	return dhcp.Exchange{
		MAC: mac, Plan: p, Type: "DISCOVER", Netboot: true, Time: time.Now(),
		Reply: "OFFER", Decision: dhcp.Offered, Address: netip.MustParseAddr("10.28.72.99"),
	}
}

// Finding H5: 10 000 DISCOVERs of invented MACs kept every node from its boot script. They
// must not, and a machine that gets no address begins no boot.
func TestInventedMachines(t *testing.T) {
	s := testServer(t)
	m1 := pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}
	s.exchange(discover(s, m1))
	for i := range 20_000 {
		s.exchange(discover(s, pools.MAC{2, 9, 3: byte(i >> 16), 4: byte(i >> 8), 5: byte(i)}))
	}
	none := discover(s, pools.MAC{2, 8})
	none.Reply, none.Decision, none.Err = "", dhcp.NoAddress, errors.New("the range is full")
	before := len(s.Store.Boots.List())
	s.exchange(none)
	if got := len(s.Store.Boots.List()); got != before || got > 5000 {
		t.Errorf("got %d boots, and %d after a machine got no address; want 5000 at most, and no more", before, got)
	}
	if _, err := s.Store.Boots.Issue(s.Machines.Of(m1).Plan); err != nil {
		t.Errorf("a declared machine gets no script: %v", err)
	}
	if _, err := s.Store.Boots.Issue(s.Machines.Of(pools.MAC{2, 8}).Plan); !errors.Is(err, boots.ErrNotBooting) {
		t.Errorf("the machine without an address: got %v, want ErrNotBooting", err)
	}
}

// Finding M10: a new node got an address that another machine leased, and that machine got
// the boot script of the node.
func TestAddressOfALease(t *testing.T) {
	s := testServer(t)
	at, lobby, mac := netip.MustParseAddr("10.28.72.99"), pools.MAC{2, 7}, pools.MAC{2, 6}
	if err := lease(s.Store, discover(s, lobby).Plan, at); err != nil {
		t.Fatal(err)
	}
	err := s.Live.AddNode(pools.PoolNode{Pool: "web", Node: pools.Node{Name: "m9", MACs: []pools.MAC{mac}, IP: at}})
	if leased, ok := errors.AsType[*pools.LeasedError](err); !ok || leased.Lease.MAC != lobby {
		t.Errorf("a new node gets the address: %v", err)
	}
	before := discover(s, pools.MAC{2, 5}).Plan // of the farm before the change
	text := strings.ReplaceAll(testConfig, "{name: m1,", `{name: m9, macs: ["02:06:00:00:00:00"], ip: 10.28.72.99}`+"\n      - {name: m1,")
	if err := errors.Join(os.WriteFile("drover.yaml", []byte(text), 0o600), s.Live.Reload()); err != nil {
		t.Fatal(err)
	}
	check := func(when string, waits bool, owner pools.MAC) {
		t.Helper()
		if p := discover(s, mac).Plan; p == nil || p.Node != "m9" || (p.Holder != nil) != waits {
			t.Errorf("%s: got plan %+v, want that it waits: %t", when, p, waits)
		}
		if m, ok := s.Machines.At(at); !ok || m.MAC != owner {
			t.Errorf("%s: at the address is %s, want %s", when, m.MAC, owner)
		}
	}
	check("while the lease lasts", true, lobby)
	if _, err := s.Store.Leases.Commit(discover(s, lobby).Plan, at, time.Now()); !errors.Is(err, pools.ErrRefused) {
		t.Errorf("the lease is renewed: %v", err)
	}
	s.Store.Leases.Release(discover(s, lobby).Plan, at, time.Now())
	if _, err := s.Store.Leases.Commit(before, at, time.Now()); !errors.Is(err, pools.ErrRefused) {
		t.Errorf("by a packet that came before the change, another machine leases it: %v", err)
	}
	check("after its end", false, mac)
}

// A boot begins with a BOOTP request, too: a client by BOOTP sends no DISCOVER.
func TestBootByBOOTP(t *testing.T) {
	s := testServer(t)
	m1 := pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}
	x := discover(s, m1)
	x.Type, x.Reply, x.Decision = "BOOTREQUEST", "BOOTREPLY", dhcp.Acknowledged
	s.exchange(x)
	if _, err := s.Store.Boots.Issue(s.Machines.Of(m1).Plan); err != nil {
		t.Errorf("it gets no script: %v", err)
	}
}

// A transfer by TFTP that the machine has acknowledged proves that it has the nonce of its boot.
// With a single port it proves nothing.
func TestNonceByTFTP(t *testing.T) {
	for _, singlePort := range []bool{false, true} {
		s := testServer(t)
		s.tftp.SinglePort = singlePort
		m1 := pools.MAC{0x52, 0x54, 0, 0x77, 1, 1}
		s.exchange(discover(s, m1))
		issue := func() script.Begun {
			nonce, err := s.Store.Boots.IssueUnproved(s.Machines.Of(m1).Plan)
			if err != nil {
				t.Fatal(err)
			}
			return script.Begun{MAC: m1, Nonce: nonce}
		}
		first, second := issue(), issue()
		s.transfer(tftp.Transfer{File: "pxelinux.cfg/default", Opened: &script.File{Begins: second}, Err: errors.New("client does not answer")})
		if err := s.Store.Boots.Unclaimed(m1, first.Nonce); err != nil {
			t.Errorf("a transfer that failed: %v", err)
		}
		s.transfer(tftp.Transfer{File: "pxelinux.cfg/default", Opened: &script.File{Begins: second}})
		if err := s.Store.Boots.Unclaimed(m1, first.Nonce); (err == nil) != singlePort {
			t.Errorf("single port %v: the nonce before is in force: %v", singlePort, err)
		}
		if err := s.Store.Boots.Unclaimed(m1, second.Nonce); err != nil {
			t.Errorf("the machine's nonce: %v", err)
		}
	}
}
