package dhcp6d

import (
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"golang.org/x/net/bpf"

	"drover/dhcp/dhcp6"
	"drover/dhcp/shed"
)

// passes reports whether the filter with a share lets a frame pass, when the random number
// of the kernel is this one. bpf.VM has no extensions of the kernel.
func passes(t *testing.T, share, random uint32, frame []byte) bool {
	t.Helper()
	const index = 7
	program := filter(index, share)
	for i, in := range program {
		switch in {
		case bpf.LoadExtension{Num: bpf.ExtInterfaceIndex}:
			program[i] = bpf.LoadConstant{Dst: bpf.RegA, Val: index}
		case bpf.LoadExtension{Num: bpf.ExtRand}:
			program[i] = bpf.LoadConstant{Dst: bpf.RegA, Val: random}
		}
	}
	if _, err := bpf.Assemble(program); err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	n, err := vm.Run(frame)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// frameOf returns a frame to port 547.
func frameOf(message []byte) []byte {
	b := make([]byte, frameHeaders, frameHeaders+len(message))
	binary.BigEndian.PutUint16(b[12:], etherTypeIPv6)
	b[ethernetHeader+6] = protocolUDP
	binary.BigEndian.PutUint16(b[ethernetHeader+ipHeader+2:], dhcp6.ServerPort)
	return append(b, message...)
}

// relayed wraps a message, behind some options of the relay agent.
func relayed(t *testing.T, message []byte, before int) []byte {
	t.Helper()
	inner, err := dhcpv6.FromBytes(message)
	if err != nil {
		t.Fatal(err)
	}
	r := &dhcpv6.RelayMessage{MessageType: dhcpv6.MessageTypeRelayForward, LinkAddr: net.IPv6loopback, PeerAddr: net.IPv6loopback}
	for i := range before {
		r.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionCode(1000 + i), OptionData: make([]byte, 5*i)})
	}
	r.AddOption(dhcpv6.OptRelayMessage(inner))
	return r.ToBytes()
}

// TestFilterSheds: with a share the filter drops SOLICITs at random, also those that a relay
// agent forwards, and nothing else. Without one it reads no message.
func TestFilterSheds(t *testing.T) {
	message := func(kind dhcpv6.MessageType) []byte {
		return (&dhcpv6.Message{MessageType: kind, TransactionID: dhcpv6.TransactionID{1, 2, 3}}).ToBytes()
	}
	solicit, request := message(dhcpv6.MessageTypeSolicit), message(dhcpv6.MessageTypeRequest)
	for name, tt := range map[string]struct {
		message []byte
		shed    bool
	}{
		"SOLICIT":                           {solicit, true},
		"REQUEST":                           {request, false},
		"RENEW":                             {message(dhcpv6.MessageTypeRenew), false},
		"SOLICIT of a relay agent":          {relayed(t, solicit, 0), true},
		"SOLICIT behind an option":          {relayed(t, solicit, 1), true},
		"SOLICIT behind three options":      {relayed(t, solicit, 3), true},
		"SOLICIT behind more than are read": {relayed(t, solicit, 4), false},
		"REQUEST of a relay agent":          {relayed(t, request, 2), false},
		"SOLICIT of two relay agents":       {relayed(t, relayed(t, solicit, 1), 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			frame := frameOf(tt.message)
			const share = shed.All / 4
			if !passes(t, share, share, frame) || passes(t, share, share+1, frame) == tt.shed {
				t.Errorf("want it to be dropped: %v", tt.shed)
			}
			if !passes(t, shed.All, shed.All, frame) {
				t.Error("dropped although all pass")
			}
		})
	}
	other := frameOf(solicit)
	other[ethernetHeader+ipHeader+3]++
	if passes(t, shed.All, 0, other) || passes(t, shed.All/4, 0, other) {
		t.Error("a packet to another port passes")
	}
}

// TestFilterBrokenRelay: a message of a relay agent that ends early is read to its end only.
func TestFilterBrokenRelay(t *testing.T) {
	whole := frameOf(relayed(t, (&dhcpv6.Message{MessageType: dhcpv6.MessageTypeSolicit}).ToBytes(), 2))
	for n := frameHeaders; n < len(whole); n++ {
		passes(t, shed.All/4, 0, slices.Clone(whole[:n])) // without an error
	}
	endless := slices.Clone(whole)
	binary.BigEndian.PutUint16(endless[frameHeaders+relayHeader+2:], 0xffff)
	if passes(t, shed.All/4, 0, endless) {
		t.Error("an option longer than the packet passes")
	}
}
