package dhcp6_test

import (
	"fmt"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"
)

// TestName: a client that sends its name is told the one of the farm (RFC 4704).
func TestName(t *testing.T) {
	fqdn := func(data ...byte) dhcpv6.Modifier {
		return with(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionFQDN, OptionData: data})
	}
	for name, tt := range map[string]struct {
		mac  byte
		t    dhcpv6.MessageType
		mods []dhcpv6.Modifier
		want string // option 39; "" for none
	}{
		"no name":                            {1, dhcpv6.MessageTypeSolicit, []dhcpv6.Modifier{ia(1)}, ""},
		"a name":                             {1, dhcpv6.MessageTypeSolicit, []dhcpv6.Modifier{ia(1), fqdn(0, 1, 'x')}, "\x04\x02m1\x07example\x03org\x00"},
		"a name for the server to update":    {1, dhcpv6.MessageTypeRequest, []dhcpv6.Modifier{toUs, ia(1), fqdn(1, 1, 'x')}, "\x06\x02m1\x07example\x03org\x00"},
		"renewed, without a name":            {1, dhcpv6.MessageTypeRenew, []dhcpv6.Modifier{toUs, ia(1, "fd00:28::10"), fqdn(4)}, "\x04\x02m1\x07example\x03org\x00"},
		"an empty option":                    {1, dhcpv6.MessageTypeSolicit, []dhcpv6.Modifier{ia(1), fqdn()}, ""},
		"of a stranger":                      {0x77, dhcpv6.MessageTypeSolicit, []dhcpv6.Modifier{ia(1), fqdn(0)}, "\x04\x11node-525400990077\x07example\x03org\x00"},
		"a message that asks for no address": {1, dhcpv6.MessageTypeInformationRequest, []dhcpv6.Modifier{fqdn(0, 1, 'x')}, ""},
	} {
		answer, x := newWorld(t).send(mac(tt.mac), message(tt.t, mac(tt.mac), tt.mods...))
		if answer == nil {
			t.Errorf("%s: silence: %s %v", name, x.Decision, x.Err)
			continue
		}
		got := ""
		if o := answer.Options.GetOne(dhcpv6.OptionFQDN); o != nil {
			got = string(o.ToBytes())
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", name, fmt.Sprintf("%q", got), fmt.Sprintf("%q", tt.want))
		}
	}
}
