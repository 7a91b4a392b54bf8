package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"drover/e2e/lab"
)

// The network of the recordings is the one of package dhcp's tests.
const (
	server = "10.28.0.2"
	known  = "52:54:00:00:00:01" // web1 there; gets 10.28.36.1
	stray  = "52:54:00:77:01:01" // unknown there; gets 10.28.72.10
)

// loaders are what dnsmasq offers over TFTP.
var loaders = map[string]string{
	"ipxe.efi":    "/boot/ipxe.efi",
	"snponly.efi": "/usr/lib/ipxe/snponly.efi",
}

// serve starts the DHCP server that the client is to meet.
func serve(ctx context.Context, rack *lab.Rack, c client) error {
	tftp := filepath.Join(rack.Dir, "tftp")
	if err := os.Mkdir(tftp, 0o755); err != nil {
		return err
	}
	for name, from := range loaders {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tftp, name), content, 0o644); err != nil {
			return err
		}
	}
	args := []string{
		"--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--port=0", "--no-ping", "--no-hosts", "--log-dhcp",
		"--log-facility=-", "--dhcp-authoritative", "--interface=" + lab.Bridge, "--bind-interfaces",
		"--dhcp-leasefile=" + filepath.Join(rack.Dir, "leases"), "--dhcp-range=10.28.72.10,10.28.72.20,12h",
		"--dhcp-host=" + known + ",10.28.36.1", "--dhcp-host=" + stray + ",10.28.72.10",
		"--enable-tftp", "--tftp-root=" + tftp,
	}
	_, err := rack.Start("dnsmasq", exec.Command("dnsmasq", append(args, c.server...)...))
	return err
}

// version returns the versions of Debian packages, for the header.
func version(ctx context.Context, packages []string) (string, error) {
	args := append([]string{"--show", "--showformat=${Package} ${Version}, "}, packages...)
	out, err := exec.CommandContext(ctx, "dpkg-query", args...).Output()
	if err != nil {
		return "", fmt.Errorf("dpkg-query: %w", err)
	}
	return strings.TrimSuffix(string(out), ", "), nil
}
