package e2e_test

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/pcap"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// TestSolicitation boots iPXE on a network without an IPv6 router. iPXE solicits one, gets
// drover's answer, and asks for its script at once: without the answer it solicits
// seven times, for 16 s.
func TestSolicitation(t *testing.T) {
	b := build(t)
	s := open(t, b, site.Config{Name: "drover-e2e-solicit", Farm: "testdata/solicit.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	for _, m := range []lab.Machine{
		{Name: "n5", Firmware: lab.BIOS, NICs: card("52:54:00:77:05:01")},
		{Name: "n6", Firmware: lab.UEFI, NICs: card("52:54:00:77:06:01")},
	} {
		t.Run(string(m.Firmware), func(t *testing.T) {
			mac := m.NICs[0].MAC
			capture := record(ctx, t, s, m.Name)
			powerOn(t, s, m)
			fixture.Until(ctx, t, m.Name+" has its script", func() (bool, error) {
				return reached(bootOf(ctx, t, s, mac), boots.StepScript), nil
			})
			logBoot(ctx, t, s, mac)
			w := solicitations(t, capture(), mac)
			t.Logf("%d solicitations, %d of them before the loader, and %d answers", w.asked, w.firmware, w.answered)
			// The firmware has an IPv6 of its own, which may ask too.
			if ipxe := w.asked - w.firmware; ipxe != 1 {
				t.Errorf("iPXE solicited %d times before it had its script, want once", ipxe)
			}
			if w.answered != w.asked {
				t.Errorf("%d solicitations got %d answers", w.asked, w.answered)
			}
		})
	}
}

// solicited is what a capture has of a machine's router solicitations, until it asks for
// its script.
type solicited struct{ asked, firmware, answered int }

// solicitations reads a capture.
func solicitations(t *testing.T, file, mac string) (n solicited) {
	t.Helper()
	for frame := range frames(t, file) {
		to, from := net.HardwareAddr(frame[:6]).String(), net.HardwareAddr(frame[6:12]).String()
		if p, ok := pcap.Parse(frame); ok && from == mac {
			switch {
			case p.TCP && bytes.HasPrefix(p.Payload, []byte("GET /boot/")):
				return n
			case !p.TCP && p.Dst.Port() == 69: // it fetches its loader
				n.firmware = n.asked
			}
		}
		switch typ := icmpv6(frame); {
		case typ == solicitation && from == mac:
			n.asked++
		case typ == advertisement && to == mac:
			n.answered++
		}
	}
	t.Error("the machine never asked for its script")
	return n
}

// Types of ICMPv6.
const (
	solicitation  = 133
	advertisement = 134
)

// icmpv6 returns the type of an ICMPv6 message; 0 for another frame.
func icmpv6(frame []byte) byte {
	if len(frame) < 55 || frame[12] != 0x86 || frame[13] != 0xdd || frame[20] != 58 {
		return 0
	}
	return frame[54]
}

// TestManagedAdvertisement boots iPXE on such a network with an advertisement of drover's
// that has the M flag: iPXE asks for DHCPv6, which it does not do without.
func TestManagedAdvertisement(t *testing.T) {
	b := build(t)
	s := open(t, b, site.Config{Name: "drover-e2e-managed", Farm: "testdata/managed.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	capture := record(ctx, t, s, "wire")
	const mac = "52:54:00:77:05:01"
	powerOn(t, s, lab.Machine{Name: "n5", Firmware: lab.BIOS, NICs: card(mac)})
	fixture.Until(ctx, t, "n5 has its script", func() (bool, error) {
		return reached(bootOf(ctx, t, s, mac), boots.StepScript), nil
	})
	logBoot(ctx, t, s, mac)
	if !asksDHCPv6(t, capture(), mac) {
		t.Error("iPXE never asked for DHCPv6")
	}
}

// asksDHCPv6 reports whether a capture has a DHCPv6 message of a machine.
func asksDHCPv6(t *testing.T, file, mac string) bool {
	t.Helper()
	for frame := range frames(t, file) {
		p, ok := pcap.Parse(frame)
		if ok && net.HardwareAddr(frame[6:12]).String() == mac && !p.TCP && p.Dst.Port() == 547 {
			return true
		}
	}
	return false
}
