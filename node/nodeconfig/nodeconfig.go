// Package nodeconfig writes a node's configuration into a root directory: host name,
// machine-id, SSH keys, sysctls, mounts, files, units and the network of systemd.
//
//	a := &nodeconfig.Applier{Root: "/", Warn: log}
//	err := a.Apply(nodeconfig.Identity{NodeConfig: config, MAC: mac, Address: addr})
//
// It changes files only. It knows nothing of the kernel, the network, or the transport of
// the configuration.
package nodeconfig

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drover/pools"
)

// Identity is the node's configuration with its MAC and address.
type Identity struct {
	pools.NodeConfig
	MAC     pools.MAC
	Address netip.Addr
}

// Applier writes a node's configuration into a root directory.
//
// Paths are not confined to Root: it follows symlinks in the image as the running system
// will. In a boot Root is "/".
type Applier struct {
	Root string
	Warn func(format string, args ...any) // called for oddities that are no errors
}

// Apply writes the whole configuration. Its error has every failure. The operator's
// files and units are written last and replace drover's own.
func (a *Applier) Apply(id Identity) error {
	var errs []error
	for _, part := range []struct {
		what string
		do   func(Identity) error
	}{
		{"host name", a.hostname},
		{"machine id", a.machineID},
		{"password", a.password},
		{"time zone", a.timezone},
		{"ssh keys", a.sshKeys},
		{"modules", a.modules},
		{"sysctls", a.sysctls},
		{"boot network", a.network},
		{"agent", a.agentUnit},
		{"mounts", a.mounts},
		{"masks", a.masks},
		{"files", a.files},
		{"units", a.units},
	} {
		if err := part.do(id); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", part.what, err))
		}
	}
	return errors.Join(errs...)
}

func (a *Applier) path(p string) string { return filepath.Join(a.Root, p) }

func (a *Applier) write(path, content string) error {
	return WriteFile(a.path(path), []byte(content), 0o644)
}

// CheckDomain allows host and domain names (RFC 1123, section 2.1).
func CheckDomain(name string) error {
	if len(name) > 253 {
		return fmt.Errorf("name of %d characters is too long", len(name))
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "-") != label {
			return fmt.Errorf("%q is not a host or domain name", name)
		}
		for _, c := range []byte(strings.ToLower(label)) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return fmt.Errorf("%q is not a host or domain name", name)
			}
		}
	}
	return nil
}

// hostname writes /etc/hostname and /etc/hosts: kubeadm waits for DNS if the node cannot
// resolve its own name.
func (a *Applier) hostname(id Identity) error {
	if err := CheckDomain(id.Hostname); err != nil {
		return err
	}
	names := id.Hostname
	if id.Domain != "" {
		if err := CheckDomain(id.Domain); err != nil {
			return err
		}
		names = id.Hostname + "." + id.Domain + " " + id.Hostname
	}
	var hosts strings.Builder
	fmt.Fprintf(&hosts, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s %s\n", id.Address, names)
	for _, name := range slices.Sorted(maps.Keys(id.Hosts)) {
		if err := CheckDomain(name); err != nil {
			return err
		}
		for _, address := range id.Hosts[name] {
			if _, err := netip.ParseAddr(address); err != nil {
				return fmt.Errorf("host %s: %w", name, err)
			}
			fmt.Fprintf(&hosts, "%s %s\n", address, name)
		}
	}
	return errors.Join(a.write("/etc/hostname", id.Hostname+"\n"), a.write("/etc/hosts", hosts.String()))
}

// machineID writes the node's machine-id(5).
func (a *Applier) machineID(id Identity) error {
	if b, err := hex.DecodeString(id.MachineID); err != nil || len(b) != 16 {
		return fmt.Errorf("machine-id %q: not 32 hex digits", id.MachineID)
	}
	return WriteFile(a.path("/etc/machine-id"), []byte(id.MachineID+"\n"), 0o444)
}

func (a *Applier) timezone(id Identity) error {
	if id.Timezone == "" {
		return nil
	}
	if !filepath.IsLocal(id.Timezone) || filepath.Clean(id.Timezone) != id.Timezone {
		return fmt.Errorf("%q is not the name of a time zone", id.Timezone)
	}
	zone := filepath.Join("usr/share/zoneinfo", id.Timezone)
	if _, err := os.Stat(a.path("/" + zone)); err != nil {
		a.Warn("the image does not know time zone %q (is tzdata in it?): the clock shows UTC", id.Timezone)
	}
	return Symlink("../"+zone, a.path("/etc/localtime"))
}

func (a *Applier) sshKeys(id Identity) error {
	if len(id.SSHAuthorizedKeys) == 0 {
		return nil
	}
	if err := checkLines(id.SSHAuthorizedKeys); err != nil {
		return err
	}
	dir := a.path("/root/.ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // the image's mode may be wider
		return err
	}
	return WriteFile(filepath.Join(dir, "authorized_keys"), lines(id.SSHAuthorizedKeys), 0o600)
}

func (a *Applier) modules(id Identity) error {
	if len(id.Modules) == 0 {
		return nil
	}
	if err := checkLines(id.Modules); err != nil {
		return err
	}
	return a.write("/etc/modules-load.d/drover.conf", string(lines(id.Modules)))
}

// sourceCheck makes the kernel drop packets of pods whose source is not the pod's own
// address (RFC 3704, strict mode). A pod with CAP_NET_RAW, which Kubernetes gives by
// default, could otherwise send DHCP to the server in the name of another host: the node
// masquerades only the addresses of pods. systemd's own 50-default.conf sets the loose
// mode 2 for each interface, and the larger of all and the interface's counts.
const sourceCheck = `# drover: a pod must not send from the address of another host. To loosen that, set
# net.ipv4.conf.all.rp_filter to 2 with the sysctls of a tag.
net.ipv4.conf.all.rp_filter = 1
net.ipv4.conf.default.rp_filter = 1
net.ipv4.conf.*.rp_filter = 1
`

// sysctls writes the default of drover, and those of the tags, which are read later.
func (a *Applier) sysctls(id Identity) error {
	if err := a.write("/etc/sysctl.d/60-drover.conf", sourceCheck); err != nil || len(id.Sysctls) == 0 {
		return err
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(id.Sysctls)) {
		if key == "" || strings.ContainsAny(key, "= \t\r\n") || strings.ContainsAny(key[:1], "#;") {
			return fmt.Errorf("%q is not the name of a sysctl", key)
		}
		all = append(all, key+" = "+id.Sysctls[key])
	}
	if err := checkLines(all); err != nil {
		return err
	}
	return a.write("/etc/sysctl.d/99-drover.conf", string(lines(all)))
}

// checkLines returns an error for an item that is more than one line.
func checkLines(items []string) error {
	for _, s := range items {
		if strings.ContainsAny(s, "\r\n\x00") {
			return fmt.Errorf("%q is more than one line", s)
		}
	}
	return nil
}

func lines(items []string) []byte {
	return []byte(strings.Join(items, "\n") + "\n")
}

// network configures systemd-networkd for the boot network card, unless a file of the
// operator or of netplan is for it, all of which have smaller numbers. Kind=!* excludes virtual
// links: a veth of a pod has type "ether" like a real card, and networkd would remove
// it from its bridge. For the same reason networkd keeps the routes and rules of the CNI.
// With KeepConfiguration a node keeps its address when no server renews it: a running
// node must not need the server, and the server leases an expired address to another
// machine only when it has no other. Each of IPv4 and IPv6 is enough to be online; networkd
// asks by DHCPv6 where a router advertisement says so. IPv6AcceptRA= is set because its
// default becomes "no" where a CNI makes the node forward.
func (a *Applier) network(id Identity) error {
	network := fmt.Sprintf(`# Written by drover-init: the network card that this node booted from.
[Match]
MACAddress=%s
Type=ether
Kind=!*

[Network]
DHCP=yes
IPv6AcceptRA=yes
KeepConfiguration=dhcp

[DHCPv4]
ClientIdentifier=mac
UseDomains=yes
UseHostname=no

[DHCPv6]
DUIDType=link-layer
UseDomains=yes
UseHostname=no
`, id.MAC)
	const foreign = `# Written by drover-init: routes and rules of the CNI are not networkd's.
[Network]
ManageForeignRoutes=no
ManageForeignRoutingPolicyRules=no
`
	return errors.Join(
		a.write(pools.BootNetwork, network),
		a.write("/etc/systemd/networkd.conf.d/10-drover.conf", foreign))
}
