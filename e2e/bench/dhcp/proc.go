package main

import (
	"fmt"
	"os"
	"strings"
)

// bound reports whether a process in the network namespace of a process has UDP
// port 67.
func bound(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasSuffix(f[1], ":0043") {
			return true
		}
	}
	return false
}
