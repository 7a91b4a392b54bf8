package attack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"drover/dhcp/packetio"
	"drover/e2e/netns"
	"drover/pools"
)

// RackMACs of a [Rack]: the router's card towards the server, and the one in the rack.
var (
	RouterMAC = pools.MAC{2, 0, 0, 0, 0, 0xfe}
	rackMAC   = pools.MAC{2, 0, 0, 0, 0x88, 0xfe}
)

// Rack is machines behind the router of a [Lab], which runs ISC dhcrelay for both families, and a
// stranger among them.
type Rack struct {
	*Lab
	Machines []*Machine
	Stranger netns.Namespace

	ports netns.Namespace // the switch, with the bridge br0
}

// NewRack adds a rack to a lab.
func (l *Lab) NewRack(t testing.TB, machines int) *Rack {
	t.Helper()
	netns.Need(t, "dhcrelay")
	r := &Rack{Lab: l}
	l.Net.IP(t, "addr", "add", "fd00:77::1/64", "dev", "br0", "nodad")
	l.Net.IP(t, "route", "add", "10.88.0.0/16", "via", RouterAddr)
	l.Net.IP(t, "route", "add", "fd00:88::/64", "via", "fd00:77::fe")
	l.Router.IP(t, "addr", "add", "fd00:77::fe/64", "dev", "eth0", "nodad")
	r.ports = netns.NewNamespace(t, l.id+"k")
	r.ports.IP(t, "link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
	r.ports.IP(t, "link", "set", "br0", "up")
	r.ports.Link(t, "port-r", l.Router, "rack")
	r.ports.IP(t, "link", "set", "port-r", "master", "br0", "up")
	l.Router.IP(t, "link", "set", "rack", "address", rackMAC.String())
	setSysctl(t, l.Router, "net/ipv4/conf/rack/rp_filter", "0")
	setSysctl(t, l.Router, "net/ipv6/conf/all/forwarding", "1")
	l.Router.IP(t, "addr", "add", "10.88.0.1/16", "dev", "rack")
	l.Router.IP(t, "addr", "add", "fd00:88::1/64", "dev", "rack", "nodad")
	l.Router.IP(t, "link", "set", "rack", "up")
	for i := range machines {
		m := &Machine{MAC: nodeMAC(i), Via: "10.88.0.1"}
		m.Net = r.port(t, fmt.Sprintf("k%d", i), m.MAC.String())
		r.Machines = append(r.Machines, m)
	}
	r.Stranger = r.port(t, "ks", "02:00:00:00:88:66")
	r.ports.IP(t, "link", "set", "port-ks", "type", "bridge_slave", "learning", "off")
	l.Router.Daemon(t, "dhcrelay", "-4", "-d", "--no-pid", "-id", "rack", "-iu", "eth0", ServerAddr)
	l.Router.Daemon(t, "dhcrelay", "-6", "-d", "--no-pid", "-l", "rack", "-u", "fd00:77::1%eth0")
	return r
}

// nodeMAC returns the MAC of a machine, nodeIP4 and nodeIP6 its addresses.
func nodeMAC(i int) pools.MAC  { return pools.MAC{0x52, 0x54, 0, 0x88, 1, byte(i)} }
func nodeIP4(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 88, 1, byte(10 + i)}) }
func nodeIP6(i int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 3: 0x88, 13: 1, 15: byte(10 + i)})
}

// port makes a host in the rack.
func (r *Rack) port(t testing.TB, name, mac string) netns.Namespace {
	t.Helper()
	n := netns.NewNamespace(t, r.id+name)
	r.ports.Link(t, "port-"+name, n, "eth0")
	r.ports.IP(t, "link", "set", "port-"+name, "master", "br0", "up")
	n.IP(t, "link", "set", "eth0", "address", mac, "addrgenmode", "eui64", "up")
	return n
}

// Config returns the config of the server.
func (r *Rack) Config() string {
	var b strings.Builder
	b.WriteString(`server: {interfaces: [br0], address: 10.77.0.1, api: "127.0.0.1:8443"}
subnets:
  - {cidr: 10.77.0.0/16, router: 10.77.0.254, dns: [10.77.0.53], lease: 1h}
  - {cidr: 10.88.0.0/16, router: 10.88.0.1, lease: 1h}
  - {cidr: "fd00:77::/64", lease: 1h}
  - {cidr: "fd00:88::/64", lease: 1h}
tags:
  all: {files: {/etc/secret: {content: "the secret of the tenant\n"}}}
pools:
  - {name: lobby, catchall: true, image: lab, range: 10.77.72.10-10.77.72.250, range6: "fd00:77::72:10-fd00:77::72:99"}
  - {name: yard, catchall: true, image: lab, range: 10.88.72.10-10.88.72.250, range6: "fd00:88::72:10-fd00:88::72:99"}
  - name: rack
    image: lab
    nodes:
`)
	for i, m := range r.Machines {
		fmt.Fprintf(&b, "      - {name: k%d, macs: [%q], ip: %s, ip6: %q}\n", i, m.MAC, nodeIP4(i), nodeIP6(i))
	}
	return b.String()
}

// client6 is a client of DHCPv6.
type client6 struct {
	conn  *net.UDPConn
	reply *dhcpv6.Message // the last one of the server
	m     *Machine
}

// Lease6 gets an address by DHCPv6, and renews it. It returns the address.
func (m *Machine) Lease6(ctx context.Context) (address netip.Addr, err error) {
	ctx, cancel := context.WithTimeout(ctx, BootLimit)
	defer cancel()
	c := &client6{m: m}
	err = m.Net.Do(func() (err error) {
		c.conn, err = net.ListenUDP("udp6", &net.UDPAddr{Port: dhcpv6.DefaultClientPort})
		return err
	})
	if err != nil {
		return address, err
	}
	defer c.conn.Close()
	id := dhcpv6.WithClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: m.MAC[:]})
	solicit, err := dhcpv6.NewSolicit(m.MAC[:], id)
	if err == nil {
		err = c.ask(ctx, solicit)
	}
	for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew} {
		if err != nil {
			break
		}
		var next *dhcpv6.Message
		if next, err = dhcpv6.NewRequestFromAdvertise(asAdvertise(c.reply)); err == nil {
			next.MessageType = kind
			err = c.ask(ctx, next)
		}
	}
	if err != nil {
		return address, fmt.Errorf("DHCPv6 of %s: %w", m.MAC, err)
	}
	for _, a := range c.reply.Options.OneIANA().Options.Addresses() {
		address, _ = netip.AddrFromSlice(a.IPv6Addr)
	}
	return address, nil
}

// asAdvertise makes an answer one that a request can follow.
func asAdvertise(m *dhcpv6.Message) *dhcpv6.Message {
	again := *m
	again.MessageType = dhcpv6.MessageTypeAdvertise
	return &again
}

// ask sends a message, again each second, until its answer with an address comes.
func (c *client6) ask(ctx context.Context, message *dhcpv6.Message) error {
	return retry(ctx, func() error {
		// The script of udhcpc removes this address together with others.
		if out, err := c.m.Net.Command("ip", "-6", "addr", "replace", local6(c.m.MAC).String()+"/64", "dev", "eth0", "nodad").CombinedOutput(); err != nil {
			return fmt.Errorf("link-local address: %w: %s", err, out)
		}
		to := &net.UDPAddr{IP: dhcpv6.AllDHCPRelayAgentsAndServers, Port: dhcpv6.DefaultServerPort, Zone: "eth0"}
		if _, err := c.conn.WriteTo(message.ToBytes(), to); err != nil {
			return err
		}
		if err := c.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		for b := make([]byte, 2000); ; {
			n, err := c.conn.Read(b)
			if err != nil {
				return fmt.Errorf("%s: %w", message.MessageType, err)
			}
			reply, err := dhcpv6.MessageFromBytes(b[:n])
			if err != nil || reply.TransactionID != message.TransactionID {
				continue
			}
			if ia := reply.Options.OneIANA(); ia == nil || len(ia.Options.Addresses()) == 0 {
				return errors.New("the answer has no address: " + reply.Summary())
			}
			c.reply = reply
			return nil
		}
	})
}

// frame6 returns the frame of a UDP packet over IPv6.
func frame6(from, to pools.MAC, src, dst netip.AddrPort, payload []byte) []byte {
	size := uint16(8 + len(payload))
	f := append(append(append([]byte(nil), to[:]...), from[:]...), 0x86, 0xdd, 0x60, 0, 0, 0)
	f = append(binary.BigEndian.AppendUint16(f, size), 17, 64)
	f = append(append(f, src.Addr().AsSlice()...), dst.Addr().AsSlice()...)
	for _, v := range []uint16{src.Port(), dst.Port(), size, 0} {
		f = binary.BigEndian.AppendUint16(f, v)
	}
	f = append(f, payload...)
	sum := packetio.Checksum(17+uint32(size), f[22:54])
	binary.BigEndian.PutUint16(f[60:], ^packetio.Checksum(uint32(sum), f[54:]))
	return f
}
