package dhcp6d

import (
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"drover/pools"
)

// TestQueues: in any flood every kind of request gets its share of the answers, and the
// queues are emptied before a worker ends.
func TestQueues(t *testing.T) {
	const solicit, request6 = dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeRequest
	node, stranger := pools.MAC{1}, pools.MAC{2}
	type kind struct {
		mac pools.MAC
		t   dhcpv6.MessageType
	}
	for _, tt := range []struct {
		name  string
		flood []kind // there is always one more of these
		few   kind   // some of these
		want  int    // answers until all of the few have theirs, at most
	}{
		{"REQUESTs of nodes in a flood of their SOLICITs", []kind{{node, solicit}}, kind{node, request6}, 12},
		{"SOLICITs of nodes in a flood of their REQUESTs", []kind{{node, request6}}, kind{node, solicit}, 110},
		{"nodes in a flood of strangers", []kind{{stranger, solicit}, {stranger, request6}}, kind{node, solicit}, 16},
		{"strangers in a flood of nodes", []kind{{node, solicit}, {node, request6}}, kind{stranger, request6}, 48},
		{"SOLICITs of nodes in a flood of all others", []kind{{node, request6}, {stranger, request6}, {stranger, solicit}}, kind{node, solicit}, 110},
		{"SOLICITs of strangers in a flood of all others", []kind{{node, solicit}, {node, request6}, {stranger, request6}}, kind{stranger, solicit}, 330},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Server{known: newLane(), strangers: newLane()}
			push := func(k kind) {
				l := s.strangers
				if k.mac == node {
					l = s.known
				}
				r := new(request)
				r.MAC, r.Type = k.mac, k.t
				l.of(k.t) <- r
			}
			const few = 10
			for range few {
				push(tt.few)
				for _, k := range tt.flood {
					push(k)
				}
			}
			stop := make(chan struct{})
			answers, left := 0, few
			for n := 1; left > 0; n++ {
				r := take(s.order(n), stop)
				if answers++; (kind{r.MAC, r.Type}) == tt.few {
					left--
				} else {
					push(kind{r.MAC, r.Type})
				}
			}
			if answers > tt.want {
				t.Errorf("%d answers until all of %d requests have theirs, want %d at most", answers, few, tt.want)
			}
			close(stop)
			for n := 1; ; n++ {
				if take(s.order(n), stop) == nil {
					break
				}
			}
			for _, c := range s.order(1) {
				if len(c) > 0 {
					t.Errorf("%d requests are left", len(c))
				}
			}
		})
	}
}
