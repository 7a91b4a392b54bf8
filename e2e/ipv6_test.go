package e2e_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/e2e/netns"
	"drover/pools/boots"
)

// boot6 is the boot of a machine that has IPv6 only.
type boot6 struct {
	machine lab.Machine
	log     []string // regular expressions for lines in the log of the server
	console string   // likewise for a line of its system, whose agent reports; "": it need not come up
}

// boot boots machines at the same time.
func boot(t *testing.T, s *site.Site, all ...boot6) {
	t.Helper()
	var guests []*lab.Guest
	for _, b := range all {
		guests = append(guests, powerOn(t, s, b.machine))
	}
	for i, b := range all {
		t.Run(b.machine.Name, func(t *testing.T) { b.wait(t, s, guests[i]) })
	}
}

// wait waits until the machine has booted.
func (b *boot6) wait(t *testing.T, s *site.Site, g *lab.Guest) {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	for _, line := range b.log {
		re := regexp.MustCompile(line)
		fixture.Until(ctx, t, "a line of the log: "+line, func() (bool, error) { return re.MatchString(read(t, s.Drover.Log())), nil })
		t.Logf("%6.1f s: the log has %s", time.Since(g.Started).Seconds(), line)
	}
	if b.console != "" {
		says(ctx, t, g, b.console)
		fixture.Until(ctx, t, b.machine.Name+" is online", func() (bool, error) {
			return reached(bootOf(ctx, t, s, b.machine.NICs[0].MAC), boots.StepOnline), nil
		})
	}
	logBoot(ctx, t, s, b.machine.NICs[0].MAC)
}

// TestIPv6Firmware boots machines with UEFI by PXE and by HTTP Boot. On x64 the firmware
// loads iPXE, which is sent to DHCPv6 by drover's router advertisement and fetches its
// script. On arm64 it loads shim and GRUB, which fetches the kernel by TFTP.
func TestIPv6Firmware(t *testing.T) {
	s := open(t, buildTiny(t, t.TempDir()), site.Config{Name: "drover-e2e-ipv6", Farm: "testdata/ipv6.yaml"})
	boot(t, s, boot6{
		lab.Machine{Name: "m1", Firmware: lab.UEFI, IPv6: true, NICs: card("52:54:00:77:a6:01")},
		[]string{`part=tftp file=snponly\.efi client=fd00:77::51 `, `path=/boot/52-54-00-77-a6-01 .* addr=fd00:77::51`},
		`tiny: card .* 52:54:00:77:a6:01 has fd00:77::51/128`,
	}, boot6{
		lab.Machine{Name: "m2", Firmware: lab.UEFI, HTTPBoot: true, Memory: 512, NICs: card("52:54:00:77:a6:02")},
		[]string{`path=/loaders/snponly\.efi .* addr=fd00:77::52`, `path=/boot/52-54-00-77-a6-02 .* addr=fd00:77::52`},
		"", // its firmware tries IPv4 for a minute first
	}, boot6{
		lab.Machine{Name: "m3", Firmware: lab.UEFIarm64, IPv6: true, NICs: card("52:54:00:77:a6:03")},
		[]string{`part=tftp file=shimaa64\.efi client=fd00:77::53 `, `part=tftp file=grubaa64\.efi client=fd00:77::53 `, `part=tftp file=images/tiny-arm64/\S+/initrd client=fd00:77::53 `},
		`tiny: card .* 52:54:00:77:a6:03 has fd00:77::53/128`,
	})
}

// TestIPv6Router boots machines with UEFI on networks with a router, to which drover leaves
// the advertisements: one on drover's wire, and one behind the router, which relays DHCPv6.
// Machines of the second network make their addresses themselves (flag M off, slaac).
func TestIPv6Router(t *testing.T) {
	const rack, behind = "drover-e2e-ipv6-router", "br1"
	s := open(t, buildTiny(t, t.TempDir()), site.Config{Name: rack, Farm: "testdata/ipv6router.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	mac := router6(t, rack, behind)
	fixture.Until(ctx, t, "drover hears the router", func() (bool, error) {
		return strings.Contains(read(t, s.Drover.Log()), "another router found"), nil
	})
	capture := record(ctx, t, s, "wire")
	far := card("52:54:00:77:a6:05")
	far[0].Wire = behind
	boot(t, s, boot6{
		lab.Machine{Name: "m4", Firmware: lab.UEFI, IPv6: true, NICs: card("52:54:00:77:a6:04")},
		[]string{`part=tftp file=snponly\.efi client=fd00:77::54 `, `path=/boot/52-54-00-77-a6-04 .* addr=fd00:77::54`},
		`tiny: card .* 52:54:00:77:a6:04 has fd00:77::54/128`,
	}, boot6{
		lab.Machine{Name: "m5", Firmware: lab.UEFI, IPv6: true, NICs: far},
		[]string{`part=tftp file=snponly\.efi client=fd00:78::5054:ff:fe77:a605 `, `path=/boot/52-54-00-77-a6-05 .* addr=fd00:78::5054:ff:fe77:a605`},
		`tiny: card .* 52:54:00:77:a6:05 has fd00:78::5054:ff:fe77:a605/128`,
	})
	advertised := 0
	for frame := range frames(t, capture()) {
		if icmpv6(frame) != advertisement {
			continue
		}
		advertised++
		if from := net.HardwareAddr(frame[6:12]).String(); from != mac {
			t.Errorf("%s sent a router advertisement, beside the router %s", from, mac)
		}
	}
	if advertised == 0 {
		t.Error("the router has advertised nothing: there is nothing to look at")
	}
}

// router6 makes a router with radvd and dhcrelay between the wire of a rack and another one,
// and returns its MAC on the first.
func router6(t *testing.T, rack netns.Namespace, behind string) (mac string) {
	t.Helper()
	rack.IP(t, "link", "add", behind, "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
	host := neighbor(t, rack, "router")
	rack.Link(t, "port", host, "eth1")
	set := func(n netns.Namespace, setting string) {
		if out, err := n.Command("sysctl", "-qw", "net.ipv6.conf."+setting).CombinedOutput(); err != nil {
			t.Fatalf("sysctl %s: %v\n%s", setting, err, out)
		}
	}
	set(rack, behind+".disable_ipv6=1") // the server's host is not on that wire
	set(host, "all.forwarding=1")
	for _, device := range []string{"port", behind} {
		rack.IP(t, "link", "set", device, "up")
	}
	rack.IP(t, "link", "set", "port", "master", behind)
	host.IP(t, "addr", "add", "fd00:77::9/64", "dev", "eth0", "nodad")
	host.IP(t, "addr", "add", "fd00:78::9/64", "dev", "eth1", "nodad")
	host.IP(t, "link", "set", "eth1", "up")
	rack.IP(t, "route", "add", "fd00:78::/64", "via", "fd00:77::9")
	fixture.Eventually(t, "the link-local addresses of the router", func() bool {
		out, err := host.Command("ip", "-6", "addr", "show", "scope", "link").Output()
		return err == nil && strings.Count(string(out), "fe80::") == 2 && !strings.Contains(string(out), "tentative")
	})
	conf := filepath.Join(t.TempDir(), "radvd.conf")
	var text strings.Builder
	for _, n := range []struct{ device, prefix, managed, autonomous string }{
		{"eth0", "fd00:77::/64", "on", "off"}, {"eth1", "fd00:78::/64", "off", "on"},
	} {
		text.WriteString("interface " + n.device + ` {
	AdvSendAdvert on; AdvManagedFlag ` + n.managed + `; AdvOtherConfigFlag on;
	MinRtrAdvInterval 3; MaxRtrAdvInterval 4; AdvDefaultLifetime 1800;
	prefix ` + n.prefix + ` { AdvAutonomous ` + n.autonomous + `; };
};
`)
	}
	if err := os.WriteFile(conf, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	host.Daemon(t, "radvd", "--nodaemon", "--config", conf, "--pidfile", filepath.Join(t.TempDir(), "pid"), "--logmethod", "stderr")
	host.Daemon(t, "dhcrelay", "-6", "-d", "--no-pid", "-I", "-l", "eth1", "-u", "fd00:77::1%eth0")
	host.In(t, func() error {
		ifi, err := net.InterfaceByName("eth0")
		if err == nil {
			mac = ifi.HardwareAddr.String()
		}
		return err
	})
	return mac
}
