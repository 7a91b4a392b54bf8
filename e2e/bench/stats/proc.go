package stats

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat: USER_HZ, 100 on every Linux. The
// kernel scales what it shows to the exact run time of all threads.
const tick = 10 * time.Millisecond

// CPUTime returns the processor time of a process with all its threads and ended children,
// in user and kernel mode.
func CPUTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return ParseStat(text)
}

// ParseStat returns the time of [CPUTime] from the text of /proc/PID/stat.
func ParseStat(text []byte) (time.Duration, error) {
	const utime, cstime = 11, 14 // fields 14 to 17, counted from the third
	fields := statFields(text)
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

// statFields returns the fields from the third on. The second is the program's name, in
// brackets; it may hold any characters.
func statFields(text []byte) []string {
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// RunTime returns the processor time of the threads of a process and of all its
// descendants, to the nanosecond. It leaves out threads and children that have ended.
func RunTime(pid int) (time.Duration, error) {
	pids, err := family(pid)
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, pid := range pids {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			return 0, err
		}
		for _, file := range threads {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // it has just ended
			}
			first, _, _ := strings.Cut(string(text), " ")
			ns, err := strconv.ParseInt(first, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %q is no time", file, text)
			}
			sum += time.Duration(ns)
		}
	}
	return sum, nil
}

// family returns a process and all its descendants.
func family(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has just ended
		}
		if f := statFields(text); len(f) > 1 {
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], child)
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all, nil
}

// BusyTime returns the time for which a processor has been busy since the host started. It
// includes the time that the hypervisor gave to other guests.
func BusyTime(cpu string) (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return ParseBusy(string(text), cpu)
}

// ParseBusy returns the time of [BusyTime] from the text of /proc/stat.
func ParseBusy(text, cpu string) (time.Duration, error) {
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

// PeakRSS returns the largest resident memory of a process so far, in bytes.
func PeakRSS(pid int) (int64, error) {
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

// LoadAverage returns the load average of the host in the last minute.
func LoadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
