package dhcp_test

import (
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp"
	"drover/pools"
)

func TestQueue(t *testing.T) {
	const d, r = discover, request
	for _, tt := range []struct {
		name           string
		length         int
		in             []dhcpv4.MessageType
		dropped, taken []int
	}{
		{"in order", 3, []dhcpv4.MessageType{d, d, d}, nil, []int{1, 2, 3}},
		{"REQUESTs first", 3, []dhcpv4.MessageType{d, r, d, r}, nil, []int{2, 4, 1, 3}},
		{"RELEASE, DECLINE and INFORM too", 3, []dhcpv4.MessageType{d, release, decline, inform}, nil, []int{2, 3, 4, 1}},
		{"rubbish with the DISCOVERs", 3, []dhcpv4.MessageType{dhcpv4.MessageTypeNone, r}, nil, []int{2, 1}},
		{"the oldest is dropped", 3, []dhcpv4.MessageType{d, d, d, d, d}, []int{1, 2}, []int{3, 4, 5}},
		{"a DISCOVER costs no REQUEST", 2, []dhcpv4.MessageType{r, r, d, d, d}, []int{3}, []int{1, 2, 4, 5}},
		{"a REQUEST costs no DISCOVER", 2, []dhcpv4.MessageType{d, d, r, r, r}, []int{3}, []int{4, 5, 1, 2}},
		{"a flood of REQUESTs leaves every eighth to the rest", 9,
			[]dhcpv4.MessageType{d, d, r, r, r, r, r, r, r, r, r}, nil, []int{3, 4, 5, 6, 7, 8, 9, 1, 10, 11, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dropped, taken, waited := dhcp.Line(tt.length, tt.in...)
			if !slices.Equal(dropped, tt.dropped) || !slices.Equal(taken, tt.taken) {
				t.Errorf("dropped %v, took %v, want %v and %v", dropped, taken, tt.dropped, tt.taken)
			}
			if int(waited) != len(tt.taken) {
				t.Errorf("depth was %d, want %d", waited, len(tt.taken))
			}
		})
	}
}

func TestLook(t *testing.T) {
	whole := message(web1, request, requested("10.28.36.1")).ToBytes()
	options := func(o ...byte) []byte { return append(slices.Clone(whole[:240]), o...) }
	for _, tt := range []struct {
		name string
		in   []byte
		mac  pools.MAC
		kind dhcpv4.MessageType
	}{
		{"a REQUEST", whole, web1, request},
		{"type behind others", options(0, 0, 61, 2, 53, 1, 53, 1, 1, 255), web1, discover},
		{"no type", options(61, 1, 1, 255, 53, 1, 1), web1, 0},
		{"cut off in an option", options(61, 200, 1, 2, 3), web1, 0},
		{"cut off in the type", options(53, 1), web1, 0},
		{"no options", options(), web1, 0},
		{"too short", whole[:239], pools.MAC{}, 0},
		{"nothing", nil, pools.MAC{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if mac, kind := dhcp.Look(tt.in); mac != tt.mac || kind != tt.kind {
				t.Errorf("got %s from %s, want %s from %s", kind, mac, tt.kind, tt.mac)
			}
		})
	}
}

// FuzzLook holds the glance against the parser: on a packet that the parser
// takes, they see the same client.
func FuzzLook(f *testing.F) {
	for _, d := range firstDiscovers() {
		f.Add(d.ToBytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		mac, _ := dhcp.Look(b)
		p, err := dhcpv4.FromBytes(b)
		if err == nil && len(p.ClientHWAddr) == 6 && string(p.ClientHWAddr) != string(mac[:]) {
			t.Errorf("got %s, the parser %s", mac, p.ClientHWAddr)
		}
	})
}
