package e2e_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
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
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for _, m := range []lab.Machine{
		{Name: "n5", Firmware: lab.BIOS, NICs: []lab.NIC{{MAC: "52:54:00:77:05:01", Boot: true}}},
		{Name: "n6", Firmware: lab.UEFI, NICs: []lab.NIC{{MAC: "52:54:00:77:06:01", Boot: true}}},
	} {
		t.Run(string(m.Firmware), func(t *testing.T) {
			mac := m.NICs[0].MAC
			capture, err := s.Capture(ctx, filepath.Join(s.Dir, m.Name+".pcap"))
			if err != nil {
				t.Fatal(err)
			}
			g, err := s.PowerOn(m)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				story(t, s, g)
				if err := g.PowerOff(); err != nil {
					t.Error(err)
				}
			}()
			fixture.Until(ctx, t, m.Name+" has its script", func() (bool, error) {
				return reached(bootOf(ctx, t, s, mac), boots.StepScript), nil
			})
			for _, step := range bootOf(ctx, t, s, mac).Steps {
				t.Logf("%s %-12s %s %s", step.Time.Format("15:04:05.000"), step.Step, step.Detail, step.Error)
			}
			if err := capture.Stop(); err != nil {
				t.Fatal(err)
			}
			w := solicitations(t, capture.File, mac)
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
	machine, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcap.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		to, from := net.HardwareAddr(frame[:6]), net.HardwareAddr(frame[6:12])
		if p, ok := pcap.Parse(frame); ok && bytes.Equal(from, machine) {
			switch {
			case p.TCP && bytes.HasPrefix(p.Payload, []byte("GET /boot/")):
				return n
			case !p.TCP && p.Dst.Port() == 69: // it fetches its loader
				n.firmware = n.asked
			}
		}
		const icmpv6, solicitation, advertisement = 58, 133, 134
		if len(frame) < 55 || frame[12] != 0x86 || frame[13] != 0xdd || frame[20] != icmpv6 {
			continue
		}
		switch typ := frame[54]; {
		case typ == solicitation && bytes.Equal(from, machine):
			n.asked++
		case typ == advertisement && bytes.Equal(to, machine):
			n.answered++
		}
	}
	t.Error("the machine never asked for its script")
	return n
}

// TestManagedAdvertisement boots iPXE on such a network with an advertisement of drover's
// that has the M flag: iPXE asks for DHCPv6, which it does not do without.
func TestManagedAdvertisement(t *testing.T) {
	b := build(t)
	s := open(t, b, site.Config{Name: "drover-e2e-managed", Farm: "testdata/managed.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if _, err := s.Run(ctx, "ip", "addr", "add", "fd00:77::1/64", "dev", lab.Bridge, "nodad"); err != nil {
		t.Fatal(err)
	}
	capture, err := s.Capture(ctx, filepath.Join(s.Dir, "wire.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	const mac = "52:54:00:77:05:01"
	g, err := s.PowerOn(lab.Machine{Name: "n5", Firmware: lab.BIOS, NICs: []lab.NIC{{MAC: mac, Boot: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer story(t, s, g)
	fixture.Until(ctx, t, "n5 has its script", func() (bool, error) {
		return reached(bootOf(ctx, t, s, mac), boots.StepScript), nil
	})
	for _, step := range bootOf(ctx, t, s, mac).Steps {
		t.Logf("%s %-12s %s %s", step.Time.Format("15:04:05.000"), step.Step, step.Detail, step.Error)
	}
	if err := capture.Stop(); err != nil {
		t.Fatal(err)
	}
	if !sent(t, capture.File, mac, 547) {
		t.Error("iPXE never asked for DHCPv6")
	}
}

// sent reports whether a capture has a UDP packet of a machine to a port, over IPv6.
func sent(t *testing.T, file, mac string, port uint16) bool {
	t.Helper()
	machine, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcap.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := r.Next()
		if err != nil {
			return false
		}
		const udp = 17
		if len(frame) >= 62 && bytes.Equal(frame[6:12], machine) && frame[12] == 0x86 && frame[13] == 0xdd && frame[20] == udp &&
			binary.BigEndian.Uint16(frame[56:]) == port {
			return true
		}
	}
}
