package main

import (
	"fmt"
	"os"
	"strings"
)

// bound reports whether a process in the network namespace of a process has the UDP
// port of a server: 67, or 547 of IPv6.
func bound(pid int, ipv6 bool) bool {
	table, port := "udp", 67
	if ipv6 {
		table, port = "udp6", 547
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
			return true
		}
	}
	return false
}
