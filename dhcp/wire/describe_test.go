package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/dhcp/wire"
	"drover/e2e/dhcptest"
)

func described(t *testing.T, packet []byte) string {
	t.Helper()
	options, err := wire.Describe(packet)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, o := range options {
		fmt.Fprintf(&b, "%d %s: %s", o.Code, o.Name, o.Value)
		if o.In != "" {
			fmt.Fprintf(&b, " in %s", o.In)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestDescribe(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := []struct {
		name, want string
		packet     []byte
	}{
		{"each kind", `1 subnet mask: 255.255.0.0
3 router: 10.28.0.1 10.28.0.2
6 DNS servers: hex:0a1c00
12 host name: web1
43 vendor options: 6=hex:08
51 lease time: 43200 s (12h0m0s)
53 message type: OFFER
55 asked for: 1 3
57 largest message: 1472
61 client identifier: hex:01525400000001
82 relay agent: 1=ge-7 2=hex:01
175 iPXE options: 176=hex:01
224 : text
225 : hex:00ff
`, dhcptest.Message(dhcptest.Web1, dhcpv4.MessageTypeOffer, dhcptest.Option(1, 255, 255, 0, 0), dhcptest.Option(3, 10, 28, 0, 1, 10, 28, 0, 2), dhcptest.Option(6, 10, 28, 0),
			dhcptest.Text(12, "web1"), dhcptest.Option(43, 6, 1, 8, 255), dhcptest.Option(51, 0, 0, 0xa8, 0xc0), dhcptest.Option(55, 1, 3), dhcptest.Option(57, 5, 0xc0),
			dhcptest.Option(61, 1, 0x52, 0x54, 0, 0, 0, 1), dhcptest.Option(82, 1, 4, 'g', 'e', '-', '7', 2, 1, 1), dhcptest.Option(175, 176, 1, 1),
			dhcptest.Text(224, "text"), dhcptest.Option(225, 0, 255)).ToBytes()},
		{"in pieces", "53 message type: OFFER\n67 boot file: " + long + "\n", dhcptest.Message(dhcptest.Web1, dhcpv4.MessageTypeOffer, dhcptest.Text(67, long)).ToBytes()},
		{"a control character", "12 host name: hex:771b5b324a\n53 message type: OFFER\n", dhcptest.Message(dhcptest.Web1, dhcpv4.MessageTypeOffer, dhcptest.Text(12, "w\x1b[2J")).ToBytes()},
		{"overloaded", "12 host name: web1 in file\n15 domain: example.org in sname\n52 option overload: 3\n53 message type: OFFER\n",
			dhcptest.Message(dhcptest.Web1, dhcpv4.MessageTypeOffer, dhcptest.Option(52, 3), func(d *dhcpv4.DHCPv4) {
				d.BootFileName, d.ServerHostName = "\x0c\x04web1\xff", "\x0f\x0bexample.org\xff"
			}).ToBytes()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := described(t, tt.packet); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
	if _, err := wire.Describe(make([]byte, 300)); err == nil {
		t.Error("a packet without the magic cookie is described")
	}
}

// FuzzDescribe checks that Describe does not panic or hang, whatever the bytes.
func FuzzDescribe(f *testing.F) {
	packet := dhcptest.Message(dhcptest.Web1, dhcpv4.MessageTypeDiscover, dhcptest.ROM, dhcptest.Option(52, 3), dhcptest.Option(82, 1, 4, 'g', 'e', '-', '7'))
	packet.BootFileName, packet.ServerHostName = "\x0c\x04web1\xff", "\x0f\x0bexample.org\xff"
	f.Add(packet.ToBytes())
	f.Fuzz(func(_ *testing.T, packet []byte) { _, _ = wire.Describe(packet) })
}
