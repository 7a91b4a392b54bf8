package dhcp6_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"drover/dhcp/dhcp6"
	"drover/pools"
	"drover/pools/config"
)

// configure replaces the tag of farmConfig.
func (w *world) configure(tag string) {
	w.Helper()
	text := strings.Replace(farmConfig, "tags: {all: {", "tags: {all: {dhcpOptions: {"+tag+"}, ", 1)
	farm, err := config.Parse("drover.yaml", []byte(text))
	if err != nil {
		w.Fatal(err)
	}
	w.server.Farm = farm
}

// TestConfiguredOptions: clients get the options of the config that they ask for, and boot
// file parameters (option 60, RFC 5970, section 3.2) with a boot file alone.
func TestConfiguredOptions(t *testing.T) {
	const tag = `"option6:bootfile-param": [root=/dev/sda1, "quiet, splash"], "option6:ntp-server": ["fd00:28::123", "ff05::101", time.example.org],
		"option6:dns-server": "fd00:28::54", "option6:65000": "hex:0102", "force:option6:65001": "hex:03", ntp-server: 10.28.0.5`
	uefi := pxe(7, "PXEClient:Arch:00007:UNDI:003000") // its list has 59, 60, 23 and 16
	solicit := dhcpv6.MessageTypeSolicit
	ntp := "0001" + "0010" + "fd000028000000000000000000000123" + "0002" + "0010" + "ff050000000000000000000000000101" +
		"0003" + "0012" + "0474696d65" + "076578616d706c65" + "036f7267" + "00"
	for _, tt := range []struct {
		name string
		msg  *dhcpv6.Message
		want map[dhcpv6.OptionCode]string // in hex; "": not sent
	}{
		{"firmware", message(solicit, m1, uefi, ia(1)), map[dhcpv6.OptionCode]string{
			60: "000e" + fmt.Sprintf("%x", "root=/dev/sda1") + "000d" + fmt.Sprintf("%x", "quiet, splash"),
			23: "fd000028000000000000000000000054", 56: "", 65000: "", 65001: "03",
		}},
		{"firmware without a loader", message(solicit, m1, pxe(0x29, "PXEClient:Arch:00041:UNDI:003000"), ia(1)), map[dhcpv6.OptionCode]string{60: "", 59: ""}},
		{"iPXE", message(solicit, m1, uefi, ipxe, ia(1)), map[dhcpv6.OptionCode]string{60: ""}},
		{"a system that asks", message(solicit, m1, with(dhcpv6.OptRequestedOption(56, 60, 65000)), ia(1)), map[dhcpv6.OptionCode]string{
			60: "", 56: ntp, 65000: "0102", 23: "",
		}},
		{"INFORMATION-REQUEST", message(dhcpv6.MessageTypeInformationRequest, m2, with(dhcpv6.OptRequestedOption(23, 56))), map[dhcpv6.OptionCode]string{
			23: "fd000028000000000000000000000054", 56: ntp,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.configure(tag)
			reply, x := w.send(sender(tt.msg), tt.msg)
			if reply == nil {
				t.Fatalf("got silence: %+v", x)
			}
			for code, want := range tt.want {
				got := ""
				for _, o := range reply.Options.Get(code) {
					got += fmt.Sprintf("%x", o.ToBytes())
				}
				if got != want {
					t.Errorf("option %d: got %q, want %q", code, got, want)
				}
			}
		})
	}
}

// sender returns the machine that sends a message of these tests.
func sender(m *dhcpv6.Message) pools.MAC { return pools.MAC(m.Options.ClientID().ToBytes()[4:]) }

// TestTooLong: options of the config that make the answer longer than one packet are left
// out whole, and the boot file is not among them.
func TestTooLong(t *testing.T) {
	w := newWorld(t)
	w.configure(fmt.Sprintf(`"option6:65001": %q, "option6:65002": %q, "option6:65003": small`, strings.Repeat("a", 700), strings.Repeat("b", 700)))
	msg := message(dhcpv6.MessageTypeSolicit, m1, pxe(7, "PXEClient:Arch:00007:UNDI:003000"), ia(1))
	msg.UpdateOption(dhcpv6.OptRequestedOption(59, 65001, 65002, 65003))
	reply, x := w.send(m1, msg)
	var codes []uint16
	for _, o := range reply.Options.Options {
		codes = append(codes, uint16(o.Code()))
	}
	if !slices.Contains(codes, 59) || !slices.Contains(codes, 65001) || slices.Contains(codes, 65002) || !slices.Contains(codes, 65003) {
		t.Errorf("got options %d", codes)
	}
	if !strings.Contains(x.Warning, "left out options [65002]") {
		t.Errorf("got warning %q", x.Warning)
	}
	if n := len(reply.ToBytes()); n > 1280-48 {
		t.Errorf("got an answer of %d bytes", n)
	}
	// What relay agents put around it counts as well.
	w.configure(fmt.Sprintf(`"option6:65001": %q`, strings.Repeat("a", 1000)))
	relayed, err := dhcpv6.EncapsulateRelay(msg, dhcpv6.MessageTypeRelayForward, own.AsSlice(), linkLocal(m1).AsSlice())
	if err != nil {
		t.Fatal(err)
	}
	relayed.AddOption(dhcpv6.OptInterfaceID([]byte(strings.Repeat("i", 200))))
	var r dhcp6.Request
	r.Parse(relayed.ToBytes(), dhcp6.Sender{Addr: own, Port: 547})
	m, x := w.server.Reply(&r, own, noon)
	if m == nil || len(m.Bytes) > 1280-48 || !strings.Contains(x.Warning, "[65001]") {
		t.Errorf("got %v, %q", m, x.Warning)
	}
}
