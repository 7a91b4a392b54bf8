package dhcpd_test

import (
	"encoding/binary"
	"testing"
	"time"

	"drover/dhcp/dhcpd"
	"drover/pools"
)

func TestLimit(t *testing.T) {
	allow := dhcpd.Limiter(noon)
	// heard is how many of n packets are answered, sent with pauses.
	heard := func(m pools.MAC, n int, from time.Time, pause time.Duration) (count int) {
		for i := range n {
			if allow(message(m, discover), m, from.Add(time.Duration(i)*pause)) {
				count++
			}
		}
		return count
	}
	for _, tt := range []struct {
		name  string
		mac   pools.MAC
		n     int
		from  time.Duration
		pause time.Duration
		want  int
	}{
		{"a burst", web1, 100, 0, 0, dhcpd.ClientBurst},
		{"another client meanwhile", stray, 10, 0, time.Millisecond, 10},
		{"five a second after it", web1, 1000, 0, 10 * time.Millisecond, 50},
		{"once it was quiet, a burst again", web1, 100, time.Minute, 0, dhcpd.ClientBurst},
		{"a client that asks every second", web1b, 1000, 0, time.Second, 1000},
		{"after so long that the clock of the buckets has gone round", stray, 100, 50 * 24 * time.Hour, 0, dhcpd.ClientBurst},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := heard(tt.mac, tt.n, noon.Add(tt.from), tt.pause); got < tt.want-1 || got > tt.want {
				t.Errorf("%d of %d packets were answered, want %d", got, tt.n, tt.want)
			}
		})
	}
}

// TestLimitSparesACrowd sends 60 000 clients 16 000 packets a second: although
// some share a bucket, none is refused.
func TestLimitSparesACrowd(t *testing.T) {
	allow := dhcpd.Limiter(noon)
	refused := 0
	for i := range 16_000 * 10 {
		m := pools.MAC{2}
		binary.BigEndian.PutUint32(m[2:], uint32(i%60_000))
		if !allow(message(m, discover), m, noon.Add(time.Duration(i)*time.Second/16_000)) {
			refused++
		}
	}
	if refused > 0 {
		t.Errorf("%d packets were refused", refused)
	}
}

// TestLimitChargesTheSender: what one host sends in the name of another, and what a relay
// agent sends, is not charged to that (finding H3).
func TestLimitChargesTheSender(t *testing.T) {
	allow := dhcpd.Limiter(noon)
	for range 1000 {
		allow(message(web1, discover), foreign, noon)
		allow(message(web1, discover, giaddr("10.28.0.254")), pools.MAC{}, noon)
	}
	if !allow(message(web1, discover), web1, noon) || !allow(message(web1, discover, giaddr("10.29.0.1")), pools.MAC{}, noon) {
		t.Error("a machine is refused because of packets that it did not send")
	}
}

// TestLimitOfAPort: a flood of made up MACs from one port of a relay agent leaves the
// other ports their share.
func TestLimitOfAPort(t *testing.T) {
	allow := dhcpd.Limiter(noon)
	heard := func(port byte) (count int) {
		for i := range uint32(10_000) {
			m := pools.MAC{2}
			binary.BigEndian.PutUint32(m[2:], i)
			if allow(message(m, discover, giaddr("10.28.0.254"), option(82, 1, 1, port)), pools.MAC{}, noon) {
				count++
			}
		}
		return count
	}
	for _, port := range []byte{1, 2} {
		if got := heard(port); got != dhcpd.PortBurst {
			t.Errorf("port %d: %d packets were answered, want %d", port, got, dhcpd.PortBurst)
		}
	}
	count := 0
	for i := range uint32(10_000) {
		m := pools.MAC{2}
		binary.BigEndian.PutUint32(m[2:], i)
		if allow(message(m, discover), foreign, noon) {
			count++
		}
	}
	if count != dhcpd.PortBurst {
		t.Errorf("%d packets of one card in made up names were answered, want %d", count, dhcpd.PortBurst)
	}
	if got := heard(1); got != 0 {
		t.Errorf("port 1 again: %d packets were answered", got)
	}
}
