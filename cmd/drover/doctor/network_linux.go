package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pin/tftp/v3"
	"golang.org/x/sys/unix"

	"drover/dhcp/bootprogram"
	"drover/dhcp/wire"
	"drover/internal/ifaddr"
	"drover/pools"
)

// ports checks that no other program holds a port of the server, which must not run.
func (d *doctor) ports() {
	if d.running {
		d.add("ports", ok, "the server has them", "")
		return
	}
	cfg := d.farm.Config.Server
	free := true
	try := func(name, network, address string) {
		if address == "" || address == "off" {
			return
		}
		var err error
		if network == "udp" {
			var c net.PacketConn
			if c, err = net.ListenPacket("udp4", address); err == nil {
				_ = c.Close()
			}
		} else {
			var l net.Listener
			if l, err = net.Listen("tcp", address); err == nil {
				_ = l.Close()
			}
		}
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			free = false
			d.add("ports", fault, fmt.Sprintf("%s: another program has %s port %s", name, network, address), "end it (ss -lnp shows it), or give drover another address in server."+name)
		case errors.Is(err, os.ErrPermission):
			free = false
			d.add("ports", skipped, fmt.Sprintf("%s: only root can try %s port %s", name, network, address), "run drover doctor as root")
		case err != nil:
			free = false
			d.add("ports", fault, fmt.Sprintf("%s: %v", name, err), "correct server."+name)
		}
	}
	try("http", "tcp", cfg.HTTP)
	try("https", "tcp", cfg.HTTPS)
	try("api", "tcp", cfg.API)
	try("tftp", "udp", cfg.TFTP)
	if cfg.DHCP != pools.DHCPOff && d.farm.Config.HasIPv4() {
		try("dhcp", "udp", ":67")
	}
	if free {
		d.add("ports", ok, "all are free", "")
	}
}

// otherServers asks for other DHCP servers on the wires of the server.
func (d *doctor) otherServers(ctx context.Context) {
	cfg := d.farm.Config.Server
	if cfg.DHCP != pools.DHCPFull && cfg.DHCP != "" {
		return // another server is meant to be there
	}
	for _, name := range cfg.Interfaces {
		found, err := askDHCP(ctx, name, d.wait)
		switch {
		case errors.Is(err, os.ErrPermission):
			d.add("dhcp", skipped, name+": only root can ask for other DHCP servers", "run drover doctor as root")
			continue
		case err != nil:
			d.add("dhcp", skipped, fmt.Sprintf("%s: other DHCP servers cannot be asked for: %v", name, err), "")
			continue
		}
		others := 0
		for _, a := range found {
			if !d.isLocal(a) {
				others++
				d.add("dhcp", fault, fmt.Sprintf("%s: another DHCP server answers: %s", name, a), "switch it off, or let it serve the addresses and set server.dhcp: proxy")
			}
		}
		if others == 0 {
			d.add("dhcp", ok, name+": no other DHCP server answers", "")
		}
	}
}

// isLocal reports whether an address is one of this host.
func (d *doctor) isLocal(a netip.Addr) bool {
	addrs, _ := net.InterfaceAddrs() // none: no address is local
	return slices.ContainsFunc(ifaddr.Prefixes(addrs), func(p netip.Prefix) bool { return p.Addr() == a })
}

// askDHCP broadcasts a DISCOVER of an invented machine on an interface, and returns the
// servers that offer it an address within wait.
func askDHCP(ctx context.Context, device string, wait time.Duration) (found []netip.Addr, err error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) {
			err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1),
				unix.BindToDevice(int(fd), device))
		}); e != nil {
			return e
		}
		return err
	}}
	conn, err := lc.ListenPacket(ctx, "udp4", ":68")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	mac := pools.MAC{0x02}
	_, _ = rand.Read(mac[1:]) // never fails
	discover := (&bootprogram.Discover{MAC: mac}).Packet()
	discover.SetBroadcast() // nobody could answer ARP for an offered address
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	if _, err := conn.WriteTo(discover.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: 67}); err != nil {
		return nil, err
	}
	packet := make([]byte, 2048)
	for ctx.Err() == nil {
		n, _, err := conn.ReadFrom(packet)
		if err != nil {
			return found, nil // the time is over
		}
		if server, ok := offerOf(packet[:n], mac); ok {
			found = append(found, server)
		}
	}
	return found, ctx.Err()
}

// offerOf returns the server of an OFFER to a machine; false for any other packet.
func offerOf(packet []byte, mac pools.MAC) (server netip.Addr, ok bool) {
	const header = 240 // of BOOTP, with the magic cookie
	if len(packet) < header || packet[0] != 2 || !bytes.Equal(packet[28:34], mac[:]) {
		return server, false
	}
	offer := false
	for o := packet[header:]; len(o) >= 2 && o[0] != 255; {
		if o[0] == 0 {
			o = o[1:]
			continue
		}
		n := int(o[1])
		if len(o) < 2+n {
			break
		}
		switch value := o[2 : 2+n]; {
		case o[0] == wire.OptMessageType && n == 1:
			offer = value[0] == 2
		case o[0] == wire.OptServerID && n == 4:
			server, _ = netip.AddrFromSlice(value)
		}
		o = o[2+n:]
	}
	return server, offer && server.IsValid()
}

// firewall looks for a chain of nftables or iptables that drops what it does not know.
func (d *doctor) firewall(ctx context.Context) {
	if os.Geteuid() != 0 {
		d.add("firewall", skipped, "only root can read its rules", "run drover doctor as root")
		return
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, tool := range [][]string{{"nft", "list", "ruleset"}, {"iptables-save"}} {
		path, err := exec.LookPath(tool[0])
		if err != nil {
			continue
		}
		rules, err := exec.CommandContext(limited, path, tool[1:]...).Output()
		if err != nil {
			continue
		}
		if closed := d.closed(string(rules)); len(closed) > 0 {
			d.add("firewall", fault, fmt.Sprintf("%s drops what no rule accepts, and no rule accepts port %s", tool[0], strings.Join(closed, ", ")),
				"accept UDP 67 and 69 with the ports of its answers, and TCP 80, from the networks of the machines")
			return
		}
	}
	d.add("firewall", ok, "no chain drops the ports of drover", "")
}

// tftp fetches a loader as the firmware of a machine does.
func (d *doctor) tftp(ctx context.Context) {
	if !d.running {
		return
	}
	file := ""
	for _, name := range []string{pools.BIOS.Loader(), pools.UEFIx64.Loader(), pools.UEFIarm64.Loader()} {
		if _, err := os.Stat(filepath.Join(d.loaders, name)); err == nil {
			file = name
			break
		}
	}
	if file == "" {
		return // another check has it
	}
	host, port, _ := net.SplitHostPort(d.farm.Config.Server.TFTP)
	if ip, err := netip.ParseAddr(host); err != nil || ip.IsUnspecified() {
		host = d.farm.Address().String()
	}
	at := net.JoinHostPort(host, port)
	n, err := fetch(ctx, at, file)
	if err != nil {
		d.add("tftp", fault, fmt.Sprintf("%s from %s: %v", file, at, err), "read the TFTP lines of the log; drover answers hosts of its subnets and of server.clients only")
		return
	}
	d.add("tftp", ok, fmt.Sprintf("%s from %s: %d bytes", file, at, n), "")
}

// fetch reads a file by TFTP and returns its size.
func fetch(_ context.Context, address, file string) (int64, error) {
	c, err := tftp.NewClient(address)
	if err != nil {
		return 0, err
	}
	c.SetTimeout(3 * time.Second)
	c.SetRetries(3)
	c.RequestTSize(true) // as firmware does: a request without options is answered late
	c.SetBlockSize(1428)
	r, err := c.Receive(file, "octet")
	if err != nil {
		return 0, err
	}
	var count counter
	_, err = r.WriteTo(&count)
	return int64(count), err
}

// counter counts the bytes that are written to it.
type counter int64

// Write implements [io.Writer].
func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
