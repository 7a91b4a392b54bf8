package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// drover6Command is drover with a range of IPv6 addresses.
func drover6Command(p *programs, dir string) (*exec.Cmd, error) {
	config := fmt.Sprintf("server: {interfaces: [%s], address: %s}\nsubnets:\n- {cidr: %s}\n- {cidr: %q, lease: %ds}\n"+
		"pools:\n- {name: machines, catchall: true, image: debian-12, range6: %q}\n",
		wire, serverAddress, subnet, subnet6, leaseTime, firstLease6+"-"+lastLease6)
	file := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return exec.Command(p.drover, "serve", "-c", file, "--state", filepath.Join(dir, "state")), nil
}

// kea6Command is Kea with the same range, set up like that of [keaCommand]. It listens on its
// address for the relay agent, and for multicast.
func kea6Command(p *programs, dir string, threads bool) (*exec.Cmd, error) {
	type m = map[string]any
	config := m{"Dhcp6": m{
		"interfaces-config":  m{"interfaces": []string{wire, wire + "/" + serverAddress6}},
		"lease-database":     m{"type": "memfile", "persist": true, "name": filepath.Join(dir, "leases.csv")},
		"multi-threading":    m{"enable-multi-threading": threads, "thread-pool-size": 2},
		"server-id":          m{"type": "LL", "persist": false},
		"valid-lifetime":     leaseTime,
		"preferred-lifetime": leaseTime,
		"subnet6": []m{{
			"id": 1, "subnet": subnet6, "pools": []m{{"pool": firstLease6 + "-" + lastLease6}},
		}},
		"loggers": []m{{
			"name": "kea-dhcp6", "severity": "INFO",
			"output_options": []m{{"output": filepath.Join(dir, "log")}},
		}},
	}}
	return p.keaCommand("kea-dhcp6", dir, config)
}
