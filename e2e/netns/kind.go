package netns

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Event is an event that a client reports.
type Event string

// The events.
const (
	Bound    Event = "bound"    // it has an address
	Renewed  Event = "renewed"  // the server that gave the lease renewed it
	Rebound  Event = "rebound"  // asked by broadcast, a server renewed the lease
	Rebooted Event = "rebooted" // it has the address of its last run again
	Refused  Event = "refused"  // it got a NAK
)

// Kind is a client program. The functions that return one document its behaviour.
type Kind struct {
	Name    string
	Program string
	// Lease is a short lease. The eighth of it between rebinding and its end is seconds,
	// so that a busy machine does not lose it.
	Lease time.Duration

	conf    string   // content of its configuration file
	keep    string   // more of it, which makes the lease outlive the program
	mounts  []string // shell commands that hide the files of the host that it would change
	args    func(*Client) []string
	says    map[Event]string // its output at each event that it reports: regular expressions
	renew   syscall.Signal   // makes it renew now; 0: it renews at T1 only
	release func(testing.TB, *Client)
	// facts returns the values of an event, from the words that says has for it and the
	// output after them; nil while that is not complete.
	facts func(c *Client, words, rest string) map[string]string
}

// Dhclient is ISC's client. It asks for its old address when it starts. It has no signal
// for a release: a second process with the same files sends it after the first has ended.
// It asks by broadcast only if 2 s are left between T2 and the end of the lease.
func Dhclient() Kind {
	args := func(c *Client) []string {
		return []string{"dhclient", "-4", "-d", "-v", "-1", "-sf", c.Dir + "/script", "-cf", "conf", "-lf", "state/leases", "-pf", "pid", c.Device}
	}
	// It writes the lease down after it has called the script, and says so last.
	done := `\n(?s:.*?)\nbound to `
	return Kind{
		Name: "dhclient", Lease: 20 * time.Second, Program: "dhclient", args: args, facts: told,
		conf: `timeout 20; initial-interval 1; backoff-cutoff 2; reboot 10; retry 1;
request subnet-mask, routers, domain-name, domain-name-servers, host-name;
`,
		mounts: []string{"touch state/leases"},
		says: map[Event]string{
			Bound: "event=BOUND" + done, Renewed: "event=RENEW" + done, Rebooted: "event=REBOOT" + done, Refused: "DHCPNAK",
			Rebound: `to 255\.255\.255\.255 port 67\n(?s:.*?)event=(RENEW|REBIND)` + done, // it calls most of them RENEW
		},
		release: func(t testing.TB, c *Client) {
			t.Helper()
			c.Kill()
			if out, err := c.command(append(args(c), "-r")).CombinedOutput(); err != nil {
				t.Fatalf("dhclient -r: %v\n%s", err, out)
			}
		},
	}
}

// Udhcpc is BusyBox's client. It renews at SIGUSR1, otherwise not within 61 s. It never asks
// for its old address when it starts, and calls a rebinding a renewal.
func Udhcpc() Kind {
	return Kind{
		Name: "udhcpc", Lease: 2 * time.Minute, Program: "udhcpc", facts: told,
		args: func(c *Client) []string {
			return []string{"udhcpc", "-f", "-n", "-R", "-t", "4", "-T", "2", "-s", c.Dir + "/script", "-i", c.Device}
		},
		says:    map[Event]string{Bound: "event=bound\n", Renewed: "event=renew\n", Rebound: "event=renew\n", Refused: "event=nak\n"},
		renew:   syscall.SIGUSR1,
		release: func(t testing.TB, c *Client) { t.Helper(); c.Signal(t, syscall.SIGTERM) },
	}
}

// Dhcpcd asks for its old address when it starts. Its configuration turns off the ARP probe
// of an address, which takes 5 s, and derives its DUID from the MAC rather than from the
// UUID of the host.
func Dhcpcd() Kind {
	return Kind{
		Name: "dhcpcd", Lease: 32 * time.Second, Program: "dhcpcd", facts: told,
		conf: `ipv4only
noarp
persistent
duid ll
option domain_name_servers, domain_name, host_name, interface_mtu, classless_static_routes
require dhcp_server_identifier
`,
		mounts: []string{"mount --bind state /var/lib/dhcpcd", "mount -t tmpfs tmpfs /run"},
		args: func(c *Client) []string {
			return []string{"dhcpcd", "-B", "-d", "-f", c.Dir + "/conf", "-c", c.Dir + "/script", c.Device}
		},
		says: map[Event]string{
			Bound: "event=BOUND\n", Renewed: "event=RENEW\n", Rebound: "event=REBIND\n", Rebooted: "event=REBOOT\n", Refused: "NAK",
		},
		release: func(t testing.TB, c *Client) { t.Helper(); c.Signal(t, syscall.SIGALRM) },
	}
}

// networkdPath is not in PATH.
const networkdPath = "/lib/systemd/systemd-networkd"

// Networkd is systemd's client, beside the one of the host. It waits for udev unless /sys is
// read-only, keeps its state in /run/systemd/netif, and needs no D-Bus. When it starts it
// asks for its old address if [Client.Keep] is set.
func Networkd() Kind {
	return Kind{
		Name: "systemd-networkd", Lease: 32 * time.Second, Program: networkdPath, facts: leased,
		mounts: []string{
			"mount -t sysfs -o ro sysfs /sys",
			"mount -t tmpfs tmpfs /run", "mkdir -p /run/systemd/netif",
			"chown -R systemd-network: state", "mount --bind state /run/systemd/netif",
			"mount -t tmpfs tmpfs /etc/systemd/network", "cp conf /etc/systemd/network/any.network",
			"export SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console",
		},
		conf: `[Match]
Kind=veth
[Network]
DHCP=ipv4
LinkLocalAddressing=no
IPv6AcceptRA=no
`,
		keep: "KeepConfiguration=dhcp\n",
		args: func(*Client) []string { return []string{networkdPath} },
		says: map[Event]string{
			Bound:    `State changed: configuring -> configured`,
			Renewed:  `REQUEST \(renewing\)(?s:.*?)client: ACK`,
			Rebound:  `REQUEST \(rebinding\)(?s:.*?)client: ACK`,
			Rebooted: `REQUEST \(init-reboot\)(?s:.*?)State changed: configuring -> configured`,
			Refused:  `NAK`,
		},
		release: func(t testing.TB, c *Client) { t.Helper(); c.Signal(t, syscall.SIGTERM) },
	}
}

// script sets and removes the address of the interface, where the client leaves that to
// its script. Then it records its variables.
const script = `#!/bin/sh
event=$1$reason
case $event in
bound | BOUND | REBOOT)
	ip addr flush dev "$interface"
	ip addr add "${ip:-$new_ip_address}/${subnet:-$new_subnet_mask}" dev "$interface" ;;
BOUND6 | RENEW6 | REBIND6)
	[ -z "$new_ip6_address" ] || ip -6 addr replace "$new_ip6_address/$new_ip6_prefixlen" dev "$interface" ;;
EXPIRE6 | RELEASE6 | STOP6)
	[ -z "$old_ip6_address" ] || ip -6 addr del "$old_ip6_address/$old_ip6_prefixlen" dev "$interface" ;;
deconfig | EXPIRE | RELEASE) ip addr flush dev "$interface" ;;
esac
{ echo "event=$event"; env; echo end; } >>%s/said
`

// told returns the variables that the script got with an event.
func told(_ *Client, words, rest string) map[string]string {
	_, event, ok := strings.Cut(words, "event=")
	env, _, whole := strings.Cut(event+rest, "\nend\n")
	if ok && !whole {
		return nil
	}
	vars := variables(env)
	for name, of := range map[string][2]string{
		"address": {"ip", "new_ip_address"}, "mask": {"subnet", "new_subnet_mask"}, "router": {"router", "new_routers"},
		"dns": {"dns", "new_domain_name_servers"}, "domain": {"domain", "new_domain_name"},
		"hostname": {"hostname", "new_host_name"}, "server": {"serverid", "new_dhcp_server_identifier"},
	} {
		vars[name] = vars[of[0]] + vars[of[1]] // of two clients: only one is there
	}
	return vars
}

// leased returns the variables in networkd's lease file; networkd has one interface. It
// writes the file a moment after its message, and removes it after a NAK.
func leased(c *Client, words, _ string) map[string]string {
	vars := map[string]string{}
	if files, _ := filepath.Glob(filepath.Join(c.Dir, "state/leases/[0-9]*")); len(files) == 1 {
		b, _ := os.ReadFile(files[0]) // it may be gone again
		vars = variables(string(b))
	}
	if vars["ADDRESS"] == "" && words != "NAK" {
		return nil
	}
	for name, of := range map[string]string{
		"address": "ADDRESS", "mask": "NETMASK", "router": "ROUTER", "dns": "DNS", "domain": "DOMAINNAME",
		"hostname": "HOSTNAME", "server": "SERVER_ADDRESS",
	} {
		vars[name] = vars[of]
	}
	return vars
}

// variables reads lines of NAME=VALUE.
func variables(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		m[k] = strings.Trim(v, "'")
	}
	return m
}
