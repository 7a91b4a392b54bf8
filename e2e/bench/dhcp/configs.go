package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// leaseTime is the same for all: none ends during a run.
const leaseTime = 3600 // s

// droverCommand is drover as an operator has it: all its listeners, its
// log at level info. There is no ARP probe, as there is none of the others;
// drover would not make one for a machine behind a relay.
func droverCommand(p *programs, dir string) (*exec.Cmd, error) {
	config := fmt.Sprintf(`server:
  interfaces: [%s]
  address: %s
  arpProbe: false
subnets:
  - {cidr: %s, router: %s, lease: %ds}
pools:
  - {name: machines, catchall: true, image: debian-12, range: %s-%s}
`, wire, serverAddress, subnet, serverAddress, leaseTime, firstLease, lastLease)
	file := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return exec.Command(p.drover, "serve", "-c", file, "--state", filepath.Join(dir, "state")), nil
}

// keaCommand is Kea with its memfile back end, durable, with the default clean
// up and logging at its default severity. Kea does not sync the file.
func keaCommand(p *programs, dir string, threads bool) (*exec.Cmd, error) {
	type m = map[string]any
	config := m{"Dhcp4": m{
		"interfaces-config": m{"interfaces": []string{wire}, "dhcp-socket-type": "udp"},
		"lease-database":    m{"type": "memfile", "persist": true, "name": filepath.Join(dir, "leases.csv")},
		"multi-threading":   m{"enable-multi-threading": threads, "thread-pool-size": 2},
		"valid-lifetime":    leaseTime,
		"subnet4": []m{{
			"id": 1, "subnet": subnet,
			"pools":       []m{{"pool": firstLease + "-" + lastLease}},
			"option-data": []m{{"name": "routers", "data": serverAddress}},
		}},
		"loggers": []m{{
			"name": "kea-dhcp4", "severity": "INFO",
			"output_options": []m{{"output": filepath.Join(dir, "log")}},
		}},
	}}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "kea.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(p.Program("kea-dhcp4"), "-c", file)
	cmd.Env = append(os.Environ(), p.Env(),
		"KEA_LFC_EXECUTABLE="+p.Program("kea-lfc"), "KEA_PIDFILE_DIR="+dir, "KEA_LOCKFILE_DIR=none")
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
