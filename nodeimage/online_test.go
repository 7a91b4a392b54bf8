// Package nodeimage_test tests files of the node image without a boot.
package nodeimage_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"drover/e2e/fixture"
	"drover/e2e/netns"
)

// networkd is where Debian has it.
const networkd = "/lib/systemd/systemd-networkd"

// begin starts networkd in namespaces of its own, with the files below $1. It has the cards
// c0 and c2, of which c0 alone has a cable. With a /sys that cannot be written networkd waits
// for no udev.
const begin = `set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/netif/links /run/systemd/network
chown -R systemd-network: /run/systemd/netif
cp "$1"/* /run/systemd/network/
mount -t sysfs -o ro sysfs /sys
ip link add c0 type veth peer name c1
ip link add c2 type veth peer name c3
ip link set c1 up
` + networkd + ` &
pid=$!
trap 'kill $pid; wait $pid' EXIT
`

// TestOnline has the real networkd say when the settings of the image let a node be online: with
// one address that others can reach, IPv4 or IPv6, although a second card has no cable, and
// not by a card that is part of a bond or a bridge, or that has an address of its link alone.
func TestOnline(t *testing.T) {
	netns.Need(t)
	if _, err := os.Stat(networkd); err != nil {
		fixture.Missing(t, err)
	}
	const file = "root/usr/lib/systemd/system/systemd-networkd-wait-online.service.d/any.conf"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile(`(?m)^ExecStart=(/.*)$`).FindSubmatch(b)
	if start == nil {
		t.Fatalf("%s starts nothing:\n%s", file, b)
	}
	const (
		dhcp   = "[Match]\nName=c2\n[Network]\nDHCP=yes\n" // of the card without a cable
		bridge = "[NetDev]\nName=br0\nKind=bridge\n"
	)
	// Lines of a shell that wait until c0 is in a state that networkd ends with.
	settled := func(state string) string {
		return `file=/run/systemd/netif/links/$(cat /sys/class/net/c0/ifindex)
until grep -qs ^ADMIN_STATE=configured $file && grep -q ^OPER_STATE=` + state + ` $file; do sleep 0.1; done
`
	}
	for name, tt := range map[string]struct {
		files map[string]string
		until string
		want  bool
	}{
		"an IPv4 address, and a card without a cable": {
			files: map[string]string{"10.network": "[Match]\nName=c0\n[Network]\nAddress=10.99.0.1/24\nIPv6AcceptRA=no\n", "20.network": dhcp}, want: true,
		},
		"an IPv6 address alone": {
			files: map[string]string{"10.network": "[Match]\nName=c0\n[Network]\nAddress=fd00:99::1/64\nIPv6AcceptRA=no\n"}, want: true,
		},
		"the port of a bridge without an address": {
			files: map[string]string{"05.netdev": bridge, "10.network": "[Match]\nName=c0\n[Network]\nBridge=br0\n", "20.network": "[Match]\nName=br0\n[Network]\nDHCP=ipv4\n"},
			until: settled("enslaved"),
		},
		"an address of the link alone": {
			files: map[string]string{"10.network": "[Match]\nName=c0\n[Network]\nLinkLocalAddressing=ipv6\nIPv6AcceptRA=no\n"},
			until: settled("degraded"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range tt.files {
				if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			limit := " --timeout=2" // a wrong setting says at once that the node is online
			if tt.want {
				limit = " --timeout=120"
			}
			cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child",
				"sh", "-c", begin+tt.until+string(start[1])+limit, "sh", dir)
			out, err := cmd.CombinedOutput()
			if got := err == nil; got != tt.want {
				t.Errorf("online: got %v, want %v\n%s", got, tt.want, out)
			}
		})
	}
}
