package nic

import (
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

var (
	from6 = netip.MustParseAddr("fe80::1")
	duid6 = &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	iaid6 = [4]byte{0, 0x77, 0, 1}
)

// reply6 returns a REPLY with these options.
func reply6(options ...dhcpv6.Option) *dhcpv6.Message {
	m := &dhcpv6.Message{MessageType: dhcpv6.MessageTypeReply}
	m.AddOption(dhcpv6.OptServerID(duid6))
	for _, o := range options {
		m.AddOption(o)
	}
	return m
}

// ia6 returns an IA_NA with these options.
func ia6(options ...dhcpv6.Option) *dhcpv6.OptIANA {
	ia := &dhcpv6.OptIANA{IaId: iaid6}
	ia.Options.Options = options
	return ia
}

func addr6(s string, valid time.Duration) dhcpv6.Option {
	return &dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(s), ValidLifetime: valid}
}

func status6(code iana.StatusCode, text string) dhcpv6.Option {
	return &dhcpv6.OptStatusCode{StatusCode: code, StatusMessage: text}
}

func TestReadLease6(t *testing.T) {
	basic := Lease{Address: netip.MustParsePrefix("fd00:77::11/128"), Server: from6, For: time.Hour, server6: duid6}
	with := func(change func(*Lease)) Lease {
		l := basic
		change(&l)
		return l
	}
	own := ia6(addr6("fd00:77::11", time.Hour))
	other := ia6(addr6("fd00:77::66", time.Hour))
	other.IaId = [4]byte{9}
	for _, tt := range []struct {
		name  string
		reply *dhcpv6.Message
		want  Lease
	}{
		{"an address alone", reply6(own), basic},
		{"DNS and search list", reply6(own, dhcpv6.OptDNS(net.ParseIP("fd00:77::53"), net.ParseIP("::"), net.ParseIP("ff02::1")),
			dhcpv6.OptDomainSearchList(labels6("example.org", "x\nnameserver 6.6.6.6", "example.net"))),
			with(func(l *Lease) {
				l.DNS, l.Search = []netip.Addr{netip.MustParseAddr("fd00:77::53")}, []string{"example.org", "example.net"}
			})},
		{"success, said twice", reply6(status6(iana.StatusSuccess, ""), ia6(status6(iana.StatusSuccess, ""), addr6("fd00:77::11", time.Hour))), basic},
		{"an old address, and a new one", reply6(ia6(addr6("fd00:77::66", 0), addr6("fd00:77::11", time.Hour))), basic},
		{"another's identity", reply6(other, own), basic},
		{"for ever", reply6(ia6(addr6("fd00:77::11", infinite))), with(func(l *Lease) { l.For = 0 })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readLease6(tt.reply, iaid6, from6)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestReadLease6Errors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply *dhcpv6.Message
		want  string
	}{
		{"no identity", reply6(), "DHCPv6 server fe80::1 offers no address"},
		{"no address", reply6(ia6()), "offers no address"},
		{"an old address", reply6(ia6(addr6("fd00:77::11", 0))), "offers no address"},
		{"none to give", reply6(ia6(status6(iana.StatusNoAddrsAvail, ""))), "DHCPv6 server fe80::1 gives no address: NoAddrsAvail"},
		{"a text", reply6(status6(iana.StatusUnspecFail, "go\naway")), `UnspecFail, "go\naway"`},
		{"zero", reply6(ia6(addr6("::", time.Hour))), "offers address ::, which no node can have"},
		{"loopback", reply6(ia6(addr6("::1", time.Hour))), "which no node can have"},
		{"multicast", reply6(ia6(addr6("ff02::1", time.Hour))), "which no node can have"},
		{"link-local", reply6(ia6(addr6("fe80::9", time.Hour))), "which no node can have"},
		{"IPv4", reply6(ia6(addr6("::ffff:10.0.0.1", time.Hour))), "which no node can have"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := readLease6(tt.reply, iaid6, from6); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func FuzzReadLease6(f *testing.F) {
	f.Add(reply6(ia6(addr6("fd00:77::11", time.Hour)), dhcpv6.OptDNS(net.ParseIP("fd00:77::53"))).ToBytes())
	f.Add(reply6(ia6(status6(iana.StatusNoAddrsAvail, "none"))).ToBytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := dhcpv6.MessageFromBytes(b)
		if err != nil {
			return
		}
		l, err := readLease6(m, iaid6, from6)
		if err != nil {
			return
		}
		if a := l.Address.Addr(); !a.Is6() || !a.IsGlobalUnicast() || l.Address.Bits() != 128 {
			t.Errorf("accepted address %s", l.Address)
		}
		for line := range strings.Lines(l.ResolvConf()) {
			if !strings.HasPrefix(line, "nameserver ") && !strings.HasPrefix(line, "search ") && !strings.HasPrefix(line, "#") {
				t.Errorf("resolv.conf has line %q", line)
			}
		}
	})
}
