package disks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// storage matches the modaliases of devices that have disks, and of disks: controllers of
// PCI's class 1 and SD hosts, virtio and hypervisors, SCSI.
var storage = regexp.MustCompile(`^(pci:.*bc01|pci:.*bc08sc05|virtio:d0000000[28]|vmbus:|xen:vbd|scsi:t-0x00|nvme|mmc:|of:.*(sata|ahci|nvme|mmc))`)

// lateStorage matches those that find their disks in the background, after their driver has
// started: SCSI, RAID, SAS, Fibre Channel. For the others the kernel has done that when the
// module is loaded.
var lateStorage = regexp.MustCompile(`^(pci:.*bc01sc0[047]|pci:.*bc0Csc04|vmbus:)`)

// Plug loads the modules of the disks of a machine, and of what they are connected to. It
// ignores errors: a disk that stays away is reported. A module can bring devices that need more
// of them.
func Plug(sys string, load func(alias string) error) {
	done := map[string]bool{}
	for more := true; more; {
		more = false
		for _, alias := range aliases(sys, storage) {
			if !done[alias] {
				done[alias], more = true, true
				_ = load(alias)
			}
		}
	}
}

// isLate reports whether the machine has controllers of [lateStorage].
func isLate(sys string) bool { return len(aliases(sys, lateStorage)) > 0 }

// aliases returns the modaliases of devices that match.
func aliases(sys string, match *regexp.Regexp) (all []string) {
	files, _ := filepath.Glob(filepath.Join(sys, "bus/*/devices/*/modalias")) // the pattern is good
	for _, f := range files {
		b, err := os.ReadFile(f)
		if alias := strings.TrimSpace(string(b)); err == nil && match.MatchString(alias) {
			all = append(all, alias)
		}
	}
	return all
}
