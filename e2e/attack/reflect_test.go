package attack_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/attack"
	"drover/e2e/dhcptest"
	"drover/pools"
)

// read is a TFTP read request with options.
func read(name string, options ...string) []byte {
	b := append([]byte("\x00\x01"+name+"\x00octet"), 0)
	for _, o := range options {
		b = append(append(b, o...), 0)
	}
	return b
}

// reflection sends a request in the name of a victim, to a port of the server.
type reflection struct {
	name string
	port uint16
	send func(victim string) []byte
	acks bool // then ACKs of all blocks, blindly
}

// reflections are requests whose answers are larger than they are.
func reflections() []reflection {
	dhcp := func(kind dhcpv4.MessageType, at func(victim string) dhcpv4.Modifier, mods ...dhcpv4.Modifier) func(string) []byte {
		all := dhcptest.Option(55, 1, 3, 6, 12, 15, 17, 28, 42, 43, 51, 54, 66, 67, 97, 119, 121, 128, 129)
		return func(victim string) []byte {
			return dhcptest.Message(pools.MAC{2, 0, 0, 0, 7, 7}, kind, append(slices.Clone(mods), all, at(victim))...).ToBytes()
		}
	}
	tftp := func(packet []byte) func(string) []byte { return func(string) []byte { return packet } }
	return []reflection{
		{"a read without options", 69, tftp(read("undionly.kpxe")), false}, // H6: retransmissions
		{"a read without options, ACKs", 69, tftp(read("undionly.kpxe")), true},
		{"windows", 69, tftp(read("undionly.kpxe", "blksize", "1468", "windowsize", "64")), true}, // H6
		{"large blocks", 69, tftp(read("undionly.kpxe", "blksize", "65464")), true},
		{"a window of small blocks", 69, tftp(read("undionly.kpxe", "windowsize", "65535")), true},
		{"the size", 69, tftp(read("undionly.kpxe", "tsize", "0", "timeout", "1")), false},
		{"no such file", 69, tftp(read("nothing")), false},
		{"a write", 69, tftp([]byte("\x00\x02x\x00octet\x00")), false},
		{"a DISCOVER of a relay", 67, dhcp(1, dhcptest.Giaddr, dhcptest.ROM), false},
		{"a DISCOVER of a relay, for m2", 67, func(victim string) []byte {
			return dhcptest.Message(attack.MachineMAC, 1, dhcptest.Giaddr(victim), dhcptest.ROM, dhcptest.Option(55, 1, 3, 6, 12, 15, 43, 66, 67)).ToBytes()
		}, false},
		{"an INFORM", 67, dhcp(8, dhcptest.Ciaddr), false},
		{"an INFORM for boot data", 4011, dhcp(8, dhcptest.Ciaddr, dhcptest.ROM), false},
		{"a REQUEST that gets a NAK", 67, dhcp(3, dhcptest.Ciaddr), false},
	}
}

// TestReflection (H6) sends requests in the name of other addresses, and counts the bytes
// that the server sends there: at most three times the requests, and nothing to addresses
// outside of the declared networks.
func TestReflection(t *testing.T) {
	l := newLab(t)
	inside, outside := netip.MustParsePrefix("10.77.201.0/24"), elsewhere
	for _, p := range []netip.Prefix{inside, outside} {
		if err := attack.Silent(l.Wire, p); err != nil {
			t.Fatal(err)
		}
	}
	l.Net.IP(t, "route", "add", outside.String(), "via", attack.WireAddr)
	modes := []string{"", ", tftpSinglePort: true"}
	if *long {
		modes = append(modes, ", dhcp: proxy")
	}
	for _, mode := range modes {
		s := l.Serve(t, fmt.Sprintf(attack.Farm, mode), 1<<20)
		if !strings.Contains(mode, "proxy") {
			boots(t, m2(l)) // the server works
		}
		for _, v := range []struct {
			name   string
			net    netip.Prefix
			factor int
		}{{"outside", outside, 0}, {"inside", inside, 3}} {
			t.Run(v.name+mode, func(t *testing.T) {
				all := reflections()
				for i, r := range reflect(t, l, all, v.net.Addr()) {
					t.Logf("%s: %d bytes sent, %d reflected", all[i].name, r.sent, r.got)
					if r.got > v.factor*r.sent {
						t.Errorf("%s: the server sends %d bytes for %d of requests, want %d times at most", all[i].name, r.got, r.sent, v.factor)
					}
				}
			})
		}
		s.WantSmall()
		s.Stop()
		s.Wild = true
	}
}

// reflected has the bytes that were sent in the name of a victim, and the bytes that the
// server sent to that victim.
type reflected struct{ sent, got int }

// reflect sends each reflection in the name of a victim of its own, the addresses after
// first.
func reflect(t *testing.T, l *attack.Lab, all []reflection, first netip.Addr) []reflected {
	t.Helper()
	raw, err := attack.NewRaw(l.Wire)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	wire, err := attack.NewWire(l.Wire)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	results, victims, of := make([]reflected, len(all)), make([]netip.AddrPort, len(all)), map[netip.Addr]int{}
	send := func(i int, to uint16, payload []byte) {
		p := attack.Packet{From: victims[i], To: netip.AddrPortFrom(netip.MustParseAddr(attack.ServerAddr), to), Payload: payload}
		results[i].sent += p.Size()
		if err := raw.Send(p); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range all {
		first = first.Next()
		of[first], victims[i] = i, netip.AddrPortFrom(first, 3000)
		if r.port != 69 {
			victims[i] = netip.AddrPortFrom(first, r.port)
		}
		send(i, r.port, r.send(first.String()))
	}
	ports := []uint16{69, learned(t, l)}
	end := time.Now().Add(length(3*time.Second, time.Minute)) // for retransmissions
	for block := 0; time.Now().Before(end); block += 64 {
		time.Sleep(20 * time.Millisecond)
		for _, p := range wire.Received() {
			if i, ok := of[p.To.Addr()]; ok {
				results[i].got += p.Size()
			}
		}
		for i, r := range all {
			for _, port := range ports {
				if r.acks && block < 2000 {
					send(i, port, binary.BigEndian.AppendUint16([]byte{0, 4}, uint16(block)))
				}
			}
		}
	}
	return results
}

// learned returns the port of the server in a transfer that the attacker requested under
// its own address.
func learned(t *testing.T, l *attack.Lab) (port uint16) {
	t.Helper()
	l.Wire.In(t, func() error {
		conn, err := net.ListenUDP("udp4", nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return err
		}
		if _, err := conn.WriteToUDPAddrPort(read("undionly.kpxe", "tsize", "0"), netip.MustParseAddrPort(attack.ServerAddr+":69")); err != nil {
			return err
		}
		_, from, err := conn.ReadFromUDPAddrPort(make([]byte, 2000))
		port = from.Port()
		return err
	})
	return port
}
