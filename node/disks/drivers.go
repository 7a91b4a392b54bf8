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

// Plug loads the modules of the disks of a machine, and of what they are connected to. It
// ignores errors: a disk that stays away is reported.
func Plug(sys string, load func(alias string) error) {
	files, _ := filepath.Glob(filepath.Join(sys, "bus/*/devices/*/modalias")) // the pattern is good
	for _, f := range files {
		b, err := os.ReadFile(f)
		if alias := strings.TrimSpace(string(b)); err == nil && storage.MatchString(alias) {
			_ = load(alias)
		}
	}
}
