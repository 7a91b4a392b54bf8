package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// leaseTime is the same for all servers. No lease ends during a run.
const leaseTime = 3600 // s

// droverCommand is drover as operators run it, with all listeners and the log at level info.
// It makes no ARP probe, like the others; drover makes none for machines behind a relay
// agent anyway.
func droverCommand(p *programs, dir string, nodes int) (*exec.Cmd, error) {
	config := fmt.Sprintf("server: {interfaces: [%s], address: %s, arpProbe: false}\n"+
		"subnets: [{cidr: %s, router: %s, lease: %ds}]\npools:\n", wire, serverAddress, subnet, serverAddress, leaseTime)
	if nodes == 0 {
		config += fmt.Sprintf("- {name: machines, catchall: true, image: debian-12, range: %s-%s}\n", firstLease, lastLease)
	} else {
		config += "- name: machines\n  image: debian-12\n  nodes:\n"
	}
	var list strings.Builder
	for i := range nodes {
		mac, address := machine(i)
		fmt.Fprintf(&list, "  - {name: n%d, macs: [%q], ip: %s}\n", i, mac, address)
	}
	config += list.String()
	file := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return exec.Command(p.drover, "serve", "-c", file, "--state", filepath.Join(dir, "state")), nil
}

// machine returns the MAC of a machine, as perfdhcp and the generator count them, and
// the address that is declared for it.
func machine(i int) (mac net.HardwareAddr, address netip.Addr) {
	n := 0x01020304 + i
	mac = net.HardwareAddr{0, 0x0c, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return mac, netip.AddrFrom4([4]byte{10, 99, 240 - byte(i/250), 1 + byte(i%250)})
}

// keaCommand is Kea with its durable memfile back end, its default cleanup of that file and
// its default log severity. Kea does not sync the file.
func keaCommand(p *programs, dir string, threads bool, nodes int) (*exec.Cmd, error) {
	type m = map[string]any
	dynamic := []m{}
	if nodes == 0 {
		dynamic = []m{{"pool": firstLease + "-" + lastLease}}
	}
	reservations := make([]m, nodes)
	for i := range reservations {
		mac, address := machine(i)
		reservations[i] = m{"hw-address": mac.String(), "ip-address": address}
	}
	config := m{"Dhcp4": m{
		"interfaces-config":            m{"interfaces": []string{wire}, "dhcp-socket-type": "udp"},
		"lease-database":               m{"type": "memfile", "persist": true, "name": filepath.Join(dir, "leases.csv")},
		"multi-threading":              m{"enable-multi-threading": threads, "thread-pool-size": 2},
		"valid-lifetime":               leaseTime,
		"host-reservation-identifiers": []string{"hw-address"},
		"subnet4": []m{{
			"id": 1, "subnet": subnet,
			"pools":        dynamic,
			"option-data":  []m{{"name": "routers", "data": serverAddress}},
			"reservations": reservations, "reservations-out-of-pool": true,
		}},
		"loggers": []m{{
			"name": "kea-dhcp4", "severity": "INFO",
			"output_options": []m{{"output": filepath.Join(dir, "log")}},
		}},
	}}
	return p.keaCommand("kea-dhcp4", dir, config)
}

// keaCommand makes a command of a program of Kea, whose files are in dir.
func (p *programs) keaCommand(program, dir string, config map[string]any) (*exec.Cmd, error) {
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "kea.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(p.Program(program), "-c", file)
	cmd.Env = append(os.Environ(), p.Env(), "KEA_LFC_EXECUTABLE="+p.Program("kea-lfc"), "KEA_PIDFILE_DIR="+dir, "KEA_LOCKFILE_DIR=none")
	return cmd, nil
}

// dnsmasqCommand is dnsmasq with DHCP alone. It writes the whole lease file anew
// for each lease.
func dnsmasqCommand(p *programs, dir string) (*exec.Cmd, error) {
	cmd := exec.Command(p.Program("dnsmasq"), "--keep-in-foreground", "--user=root", "--conf-file=/dev/null", "--port=0",
		"--bind-interfaces", "--interface="+wire, "--no-ping", "--dhcp-authoritative",
		fmt.Sprintf("--dhcp-range=%s,%s,255.255.0.0,%d", firstLease, lastLease, leaseTime),
		fmt.Sprintf("--dhcp-lease-max=%d", machines+1000),
		"--dhcp-option=option:router,"+serverAddress,
		"--dhcp-leasefile="+filepath.Join(dir, "leases"), "--log-facility="+filepath.Join(dir, "log"), "--pid-file")
	cmd.Env = append(os.Environ(), p.Env())
	return cmd, nil
}
