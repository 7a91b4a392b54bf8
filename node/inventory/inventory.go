// Package inventory finds the hardware of a machine in the files of the kernel: [Collect].
//
// It lists what the kernel has a driver for. It knows nothing of the server, which asks no
// machine to be right.
package inventory

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"drover/pools"
)

// Collect returns the inventory of a machine, from below the root: of /sys and /proc.
// Everything that cannot be read is left out.
func Collect(root string) pools.Inventory {
	dmi := func(name string) string { return text(filepath.Join(root, "sys/class/dmi/id", name)) }
	v := pools.Inventory{
		Vendor: dmi("sys_vendor"), Product: dmi("product_name"), Serial: dmi("product_serial"), UUID: dmi("product_uuid"),
		Chassis: dmi("chassis_serial"), BIOS: dmi("bios_version"),
	}
	if b, err := os.ReadFile(filepath.Join(root, "sys/firmware/dmi/tables/DMI")); err == nil {
		locate(&v, b[:min(len(b), maxDMI)])
	}
	if v.Product == "" { // a device tree
		tree := func(name string) string {
			return strings.TrimRight(text(filepath.Join(root, "proc/device-tree", name)), "\x00")
		}
		v.Product, v.Serial = tree("model"), tree("serial-number")
	}
	v.CPU, v.CPUs = cpu(text(filepath.Join(root, "proc/cpuinfo")))
	v.Memory = memory(text(filepath.Join(root, "proc/meminfo")))
	v.Disks, v.NICs = disks(filepath.Join(root, "sys/block")), nics(filepath.Join(root, "sys/class/net"))
	return v.Clean()
}

// text returns the content of a file; "" if it cannot be read.
func text(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

func cpu(info string) (model string, n int) {
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "processor":
			n++
		case "model name":
			model = strings.TrimSpace(value)
		}
	}
	return model, n
}

func memory(info string) int64 {
	for line := range strings.Lines(info) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			n, _ := strconv.ParseInt(f[1], 10, 40)
			return n << 10
		}
	}
	return 0
}

// disks lists the block devices that are devices of the machine.
func disks(dir string) (all []pools.InventoryDisk) {
	entries, _ := os.ReadDir(dir) // without it there are none
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(at, "device")); err != nil || text(filepath.Join(at, "removable")) == "1" {
			continue // loop, RAM, device mapper
		}
		sectors, _ := strconv.ParseInt(text(filepath.Join(at, "size")), 10, 50)
		d := pools.InventoryDisk{Name: e.Name(), Model: text(filepath.Join(at, "device/model")), Serial: text(filepath.Join(at, "device/serial")), Size: sectors * 512}
		if d.Serial == "" {
			d.Serial = text(filepath.Join(at, "serial")) // virtio
		}
		all = append(all, d)
	}
	return all
}

// nics lists the network cards.
func nics(dir string) (all []pools.InventoryNIC) {
	entries, _ := os.ReadDir(dir) // without it there are none
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(at, "device")); err != nil {
			continue // lo, a bridge
		}
		driver, _ := os.Readlink(filepath.Join(at, "device/driver"))
		speed, _ := strconv.Atoi(text(filepath.Join(at, "speed"))) // unknown: -1, or an error
		n := pools.InventoryNIC{Name: e.Name(), MAC: text(filepath.Join(at, "address")), Link: text(filepath.Join(at, "carrier")) == "1", Speed: speed}
		if driver != "" {
			n.Driver = filepath.Base(driver)
		}
		all = append(all, n)
	}
	return all
}
