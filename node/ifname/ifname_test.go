package ifname_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"drover/e2e/fixture"
	"drover/node/ifname"
)

const defaultLink = "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep kernel database onboard slot path\nAlternativeNamesPolicy=database onboard slot path\nMACAddressPolicy=persistent\n"

func TestName(t *testing.T) {
	const onboard = "Using default interface naming scheme 'v252'.\nID_NET_NAME_MAC=enx525400770001\nID_NET_NAME_ONBOARD=eno1\nID_NET_NAME_PATH=enp1s0\n"
	const usual = "/usr/lib/systemd/network/99-default.link"
	for _, tt := range []struct {
		name  string
		files map[string]string
		line  string
		netID string
		want  string
	}{
		{"on board", map[string]string{usual: defaultLink}, "", onboard, "eno1"},
		{"by path", map[string]string{usual: defaultLink}, "quiet", "ID_NET_NAME_PATH=enp0s3\n", "enp0s3"},
		{"in a slot", map[string]string{usual: defaultLink}, "", "ID_NET_NAME_SLOT=ens3\nID_NET_NAME_PATH=enp0s3\n", "ens3"},
		{"unmerged /lib", map[string]string{"/lib/systemd/network/99-default.link": defaultLink}, "", onboard, "eno1"},
		{"net.ifnames=0", map[string]string{usual: defaultLink}, "quiet net.ifnames=0", onboard, "eth0"},
		{"the kernel's is predictable", map[string]string{usual: defaultLink, "/sys/class/net/eth0/name_assign_type": "2\n"}, "", onboard, "eth0"},
		{"nothing is known of it", map[string]string{usual: defaultLink}, "", "", "eth0"},
		{"no .link files", nil, "", onboard, "eth0"},
		{"by MAC", map[string]string{usual: defaultLink, "/etc/systemd/network/10-lan.link": "[Match]\nMACAddress=02:00:00:00:00:01 52:54:00:77:00:01\n[Link]\nName=lan0\n"}, "", onboard, "lan0"},
		{"by MAC, with net.ifnames=0", map[string]string{usual: defaultLink, "/etc/systemd/network/10-lan.link": "[Match]\nPermanentMACAddress=52:54:00:77:00:01\n[Link]\nName=lan0\n"}, "net.ifnames=0", onboard, "lan0"},
		{"of another MAC", map[string]string{usual: defaultLink, "/etc/systemd/network/10-lan.link": "[Match]\nMACAddress=02:00:00:00:00:01\n[Link]\nName=lan0\n"}, "", onboard, "eno1"},
		{"by path, a glob", map[string]string{usual: defaultLink, "/etc/systemd/network/10-lan.link": "[Match]\nPath=pci-0000:01:*\n[Link]\nName=lan0\n"}, "", onboard, "lan0"},
		{"by driver", map[string]string{usual: defaultLink, "/sys/class/net/eth0/device/driver": "->/sys/bus/pci/drivers/mlx4_core",
			"/etc/systemd/network/10-lan.link": "[Match]\nDriver=!mlx5_core\nType=ether\n[Link]\nNamePolicy=mac\n"}, "", onboard, "enx525400770001"},
		{"replaced by /etc", map[string]string{usual: defaultLink, "/etc/systemd/network/99-default.link": "[Match]\nOriginalName=*\n[Link]\nNamePolicy=\nName=net0\n"}, "", onboard, "net0"},
		{"masked by /etc", map[string]string{usual: defaultLink, "/etc/systemd/network/99-default.link": "->/dev/null"}, "", onboard, "eth0"},
		{"a condition that is not known", map[string]string{usual: defaultLink, "/etc/systemd/network/10-x.link": "[Match]\nProperty=X=1\n[Link]\nName=lan0\n"}, "", onboard, "eno1"},
		{"no conditions", map[string]string{usual: defaultLink, "/etc/systemd/network/10-x.link": "[Link]\nName=lan0\n"}, "", onboard, "eno1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &ifname.Predictor{Root: fixture.Tree(t, tt.files), CommandLine: tt.line, Builtin: func(_ context.Context, builtin, syspath string) ([]byte, error) {
				switch {
				case syspath != "/sys/class/net/eth0":
					t.Errorf("asked for %q", syspath)
				case builtin == "path_id":
					return []byte("ID_PATH=pci-0000:01:00.0\nID_PATH_TAG=pci-0000_01_00_0\n"), nil
				}
				return []byte(tt.netID), nil
			}}
			got, err := p.Name(t.Context(), "eth0", net.HardwareAddr{0x52, 0x54, 0, 0x77, 0, 1})
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestNameWithoutUdev(t *testing.T) {
	p := &ifname.Predictor{Root: t.TempDir(), Builtin: func(context.Context, string, string) ([]byte, error) {
		return nil, &exec.Error{Name: "udevadm", Err: exec.ErrNotFound}
	}}
	got, err := p.Name(t.Context(), "eth0", net.HardwareAddr{2, 0, 0, 0, 0, 1})
	if got != "eth0" || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %q, %v, want eth0 and an error", got, err)
	}
}

// Process 1 has no PATH, and udevadm is in one of several directories.
func TestUdevadm(t *testing.T) {
	program := filepath.Join(t.TempDir(), "udevadm")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho $1 $2 $3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ifname.SetUdevadm(t, filepath.Join(t.TempDir(), "udevadm"), program)
	t.Setenv("PATH", "")
	out, err := ifname.Udevadm(t.Context(), "net_id", "/sys/class/net/lo")
	if err != nil || string(out) != "test-builtin net_id /sys/class/net/lo\n" {
		t.Errorf("got %q, %v", out, err)
	}
	ifname.SetUdevadm(t, filepath.Join(t.TempDir(), "udevadm"))
	if _, err := ifname.Udevadm(t.Context(), "net_id", "/sys/class/net/lo"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without udev: %v", err)
	}
}
