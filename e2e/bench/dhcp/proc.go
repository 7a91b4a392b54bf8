package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat: USER_HZ, 100 on every Linux. The
// kernel scales what it shows to the exact run time of all threads.
const tick = 10 * time.Millisecond

// cpuTime is what a process with all its threads and ended children has used,
// in user and kernel mode.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(text)
}

func parseStat(text []byte) (time.Duration, error) {
	// The second field is the program's name, in brackets and with anything in it.
	i := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[i+1:]))
	const utime, cstime = 11, 14 // fields 14 to 17, counted from the third
	if len(fields) <= cstime {
		return 0, errors.New("stat is too short")
	}
	var sum time.Duration
	for _, f := range fields[utime : cstime+1] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// busyTime is how long a processor has been busy since the host started, with
// anything; what the hypervisor gave to other guests counts as well.
func busyTime(cpu string) (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(text), cpu)
}

func parseBusy(text, cpu string) (time.Duration, error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 9 || f[0] != "cpu"+cpu {
			continue
		}
		var sum time.Duration
		// user nice system idle iowait irq softirq steal
		for _, i := range []int{1, 2, 3, 6, 7, 8} {
			n, err := strconv.ParseInt(f[i], 10, 64)
			if err != nil {
				return 0, err
			}
			sum += time.Duration(n) * tick
		}
		return sum, nil
	}
	return 0, fmt.Errorf("/proc/stat has no processor %s", cpu)
}

// peakRSS is the most memory that a process had resident, in bytes.
func peakRSS(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("no VmHWM")
}

// bound tells whether somebody in the network namespace of a process has UDP
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
