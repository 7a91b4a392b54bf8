package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/e2e/lab"
)

// A client is a program that asks for DHCP.
type client struct {
	name     string
	title    string
	packages []string // Debian packages that it is made of
	mac      string
	server   []string // arguments of dnsmasq's
	wanted   func(*dhcpv4.DHCPv4) bool
	// start starts it and returns a description.
	start func(context.Context, *lab.Rack, client) (how string, err error)
	args  []string // of QEMU, or a shell's script
}

// ipconfig is the client of Debian's initramfs.
const ipconfig = "/usr/lib/klibc/bin/ipconfig"

var clients = []client{
	{
		name: "ipxe-bios", title: "iPXE in the ROM of QEMU's virtio NIC, started by SeaBIOS",
		packages: []string{"qemu-system-x86", "ipxe-qemu"}, mac: known,
		wanted: class("PXEClient:Arch:00000"), start: pc,
	},
	{
		name: "ipxe-efi", title: "iPXE (ipxe.efi, its own drivers), loaded by OVMF over TFTP",
		packages: []string{"qemu-system-x86", "ovmf", "ipxe"}, mac: known, server: []string{"--dhcp-boot=ipxe.efi"},
		wanted: ipxe, start: uefi,
	},
	{
		name: "snponly-efi", title: "iPXE (snponly.efi, the firmware's driver), loaded by OVMF over TFTP",
		packages: []string{"qemu-system-x86", "ovmf", "ipxe"}, mac: known, server: []string{"--dhcp-boot=snponly.efi"},
		wanted: ipxe, start: uefi,
	},
	{
		name: "ovmf-pxe", title: "OVMF, UEFI PXE over IPv4",
		packages: []string{"qemu-system-x86", "ovmf"}, mac: known, server: []string{"--dhcp-boot=snponly.efi"},
		wanted: class("PXEClient:Arch:00007"), start: uefi,
	},
	{
		name: "ovmf-http", title: "OVMF, UEFI HTTP Boot over IPv4",
		packages: []string{"qemu-system-x86", "ovmf"}, mac: known,
		server: []string{"--dhcp-option-force=60,HTTPClient", "--dhcp-boot=http://" + server + "/snponly.efi"},
		wanted: class("HTTPClient"), start: uefi,
		args: []string{
			"-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n",
			"-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n",
		},
	},
	{
		name: "aavmf-pxe", title: "AAVMF (arm64), UEFI PXE over IPv4",
		packages: []string{"qemu-system-arm", "qemu-efi-aarch64"}, mac: stray, server: []string{"--dhcp-boot=snponly.efi"},
		wanted: class("PXEClient:Arch:00011"), start: arm,
	},
	{
		name: "u-boot", title: "U-Boot (qemu_arm64), the command dhcp of its default boot",
		packages: []string{"qemu-system-arm", "u-boot-qemu"}, mac: stray,
		wanted: class("U-Boot"), start: armUBoot,
	},
	{
		name: "u-boot-efi", title: "U-Boot (qemu_arm64), asking for an EFI program later in the same boot",
		packages: []string{"qemu-system-arm", "u-boot-qemu"}, mac: stray,
		wanted: class("PXEClient:Arch:00011"), start: armUBoot,
	},
	{
		name: "linux-ipconfig", title: "ipconfig of klibc, which Debian's initramfs runs for ip=dhcp",
		packages: []string{"klibc-utils"}, mac: stray, wanted: any,
		start: shell, args: []string{ipconfig + " -t 20 -c dhcp -d cli"},
	},
	{
		name: "systemd-networkd", title: "systemd-networkd with DHCP=ipv4",
		packages: []string{"systemd"}, mac: known, wanted: any,
		start: shell, args: networkd,
	},
	{
		name: "dhclient", title: "ISC dhclient with an empty configuration",
		packages: []string{"isc-dhcp-client"}, mac: known, wanted: any,
		start: shell, args: []string{": >conf", "dhclient -4 -d -v -1 -sf /bin/true -cf conf -lf leases -pf pid cli"},
	},
	{
		name: "udhcpc", title: "udhcpc of BusyBox",
		packages: []string{"udhcpc"}, mac: known, wanted: any,
		start: shell, args: []string{"udhcpc -i cli -f -q -s /bin/true"},
	},
	{
		name: "dhcpcd", title: "dhcpcd with Debian's configuration, but for its identity",
		packages: []string{"dhcpcd-base"}, mac: known, wanted: any,
		start: shell, args: dhcpcd,
	},
}

// networkd runs systemd-networkd beside the host's. It waits for udev unless
// /sys is read-only; it keeps its state in /run/systemd/netif; its DUID (option
// 61) comes from the machine-id. It does not mind that there is no D-Bus.
var networkd = []string{
	"mount -t sysfs -o ro sysfs /sys",
	"mount -t tmpfs tmpfs /run/systemd", "mkdir -p /run/systemd/netif", "chown systemd-network: /run/systemd/netif",
	"mount -t tmpfs tmpfs /etc/systemd/network",
	`printf '[Match]\nName=cli\n[Network]\nDHCP=ipv4\n' >/etc/systemd/network/cli.network`,
	"echo d20fe70000004000800000000000beef >machine-id", "mount --bind machine-id /etc/machine-id",
	"exec /lib/systemd/systemd-networkd",
}

// dhcpcd tells in option 60 which kernel and processor it runs on, and makes
// option 61 from the host's UUID, or the clock at its first start: here both
// are the same everywhere.
var dhcpcd = []string{
	"sed -e 's/^vendorclassid.*/vendorclassid dhcpcd/' -e 's/^duid/duid ll/' /etc/dhcpcd.conf >conf",
	"mount -t tmpfs tmpfs /var/lib/dhcpcd", "mount -t tmpfs tmpfs /run",
	"dhcpcd -4 -B -d -f $PWD/conf -c /bin/true cli",
}

func clientNames() []string {
	var names []string
	for _, c := range clients {
		names = append(names, c.name)
	}
	return names
}

// any accepts the first message.
func any(*dhcpv4.DHCPv4) bool { return true }

// ipxe accepts the messages of iPXE, not those of the firmware that loaded it.
func ipxe(d *dhcpv4.DHCPv4) bool { return string(d.Options[77]) == "iPXE" }

// class accepts messages whose option 60 begins with prefix.
func class(prefix string) func(*dhcpv4.DHCPv4) bool {
	return func(d *dhcpv4.DHCPv4) bool { return strings.HasPrefix(string(d.Options[60]), prefix) }
}

// shell runs a client of an operating system on a veth of the rack's, as a
// machine called "client" with mounts of its own.
func shell(ctx context.Context, rack *lab.Rack, c client) (string, error) {
	for _, args := range [][]string{
		{"link", "add", "cli", "address", c.mac, "type", "veth", "peer", "name", "port"},
		{"link", "set", "port", "master", lab.Bridge, "up"},
		{"link", "set", "cli", "up"},
	} {
		if _, err := rack.Run(ctx, "ip", args...); err != nil {
			return "", err
		}
	}
	script := strings.Join(append([]string{"set -e", "hostname client"}, c.args...), "\n")
	cmd := exec.Command("unshare", "--uts", "--mount", "--propagation", "private", "sh", "-c", script)
	cmd.Dir = rack.Dir
	_, err := rack.Start("client", cmd)
	return fmt.Sprintf("started with: %s", strings.Join(c.args, "; ")), err
}
