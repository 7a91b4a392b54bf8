package dhcpd_test

import (
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/dhcpd"
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
			var packets []dhcpd.Packet
			for _, kind := range tt.in {
				packets = append(packets, dhcpd.Packet{Type: kind})
			}
			dropped, taken, waited := dhcpd.Line(tt.length, packets...)
			if !slices.Equal(dropped, tt.dropped) || !slices.Equal(taken, tt.taken) {
				t.Errorf("dropped %v, took %v, want %v and %v", dropped, taken, tt.dropped, tt.taken)
			}
			if waited != len(tt.taken) {
				t.Errorf("depth was %d, want %d", waited, len(tt.taken))
			}
		})
	}
}

// TestStrangersLeaveRoom: a flood of strangers costs no known machine its place, and most
// of the turns are those of known machines.
func TestStrangersLeaveRoom(t *testing.T) {
	known, stranger := dhcpd.Packet{Type: discover, Known: true}, dhcpd.Packet{Type: discover}
	dropped, taken, _ := dhcpd.Line(4, known, stranger, stranger, stranger, known, stranger, stranger, known, known)
	if want := []int{2}; !slices.Equal(dropped, want) {
		t.Errorf("dropped %v, want %v", dropped, want)
	}
	if want := []int{1, 5, 8, 3, 9, 4, 6, 7}; !slices.Equal(taken, want) {
		t.Errorf("took %v, want %v", taken, want)
	}
}
