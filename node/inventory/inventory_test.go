package inventory_test

import (
	"reflect"
	"testing"

	"drover/e2e/fixture"
	"drover/node/inventory"
	"drover/pools"
)

func TestCollect(t *testing.T) {
	root := fixture.Tree(t, map[string]string{
		"sys/class/dmi/id/sys_vendor": "HPE\n", "sys/class/dmi/id/product_name": "ProLiant m710x\n", "sys/class/dmi/id/product_serial": "CN1\n",
		"sys/firmware/dmi/tables/DMI": dmi(1, "\x01", "HPE") + dmi(2, "\x00\x00\x00\x00\x00\x00\x01", " c12n1 ") + dmi(127, ""),
		"proc/cpuinfo":                "processor\t: 0\nmodel name\t: Xeon D\n\nprocessor\t: 1\nmodel name\t: Xeon D\n",
		"proc/meminfo":                "MemTotal:       32768 kB\nMemFree: 1 kB\n",
		"sys/block/nvme0n1/size":      "1000\n", "sys/block/nvme0n1/device/model": "SSD 9 \n", "sys/block/nvme0n1/device/serial": "S1\n",
		"sys/block/vda/size": "2000\n", "sys/block/vda/serial": "V1\n", "sys/block/vda/device/x": "",
		"sys/block/loop0/size": "5\n", "sys/block/sdb/size": "5\n", "sys/block/sdb/removable": "1\n", "sys/block/sdb/device/x": "",
		"sys/class/net/eth0/address": "52:54:00:00:00:01\n", "sys/class/net/eth0/carrier": "1\n", "sys/class/net/eth0/speed": "10000\n", "sys/class/net/eth0/device/driver": "->../../bus/mlx4_core",
		"sys/class/net/eth1/address": "52:54:00:00:00:02\n", "sys/class/net/eth1/speed": "-1\n", "sys/class/net/eth1/device/x": "",
		"sys/class/net/lo/address": "00:00:00:00:00:00\n",
	})
	want := pools.Inventory{
		Vendor: "HPE", Product: "ProLiant m710x", Serial: "CN1", Slot: "c12n1", CPU: "Xeon D", CPUs: 2, Memory: 32 << 20,
		Disks: []pools.InventoryDisk{{Name: "nvme0n1", Model: "SSD 9", Serial: "S1", Size: 512000}, {Name: "vda", Serial: "V1", Size: 1024000}},
		NICs:  []pools.InventoryNIC{{Name: "eth0", MAC: "52:54:00:00:00:01", Driver: "mlx4_core", Link: true, Speed: 10000}, {Name: "eth1", MAC: "52:54:00:00:00:02"}},
	}
	if got := inventory.Collect(root); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := inventory.Collect(t.TempDir()); !reflect.DeepEqual(got, pools.Inventory{}) {
		t.Errorf("of nothing: got %+v", got)
	}
}

// dmi returns a structure of the table of DMI: fields behind the head, and strings.
func dmi(kind byte, fields string, strings ...string) string {
	s := string([]byte{kind, byte(4 + len(fields)), 0, kind}) + fields
	for _, text := range strings {
		s += text + "\x00"
	}
	if len(strings) == 0 {
		s += "\x00"
	}
	return s + "\x00"
}

// locator is HPE's structure: rack, enclosure, model, bay 3 and serial number of the enclosure.
var locator = dmi(204, "\x01\x02\x03\x04\x10\x08\x05", "r1", "e1", "c7000", "3", "CZ9")

func TestLocation(t *testing.T) {
	board := dmi(2, "\x00\x00\x00\x00\x00\x00\x01", "Slot 4")
	for _, tt := range []struct {
		name, vendor, table string
		slot, chassis       string
	}{
		{"a board", "Dell Inc.", board, "Slot 4", "CH1"},
		{"a blade of HPE", "HPE", board + locator, "3", "CZ9"},
		{"another vendor's structure 204", "Dell Inc.", locator, "", "CH1"},
		{"no location", "HPE", dmi(2, "\x00\x00\x00\x00", ""), "", "CH1"},
		{"a string that is not there", "HPE", dmi(2, "\x00\x00\x00\x00\x00\x00\x02", "x"), "", "CH1"},
		{"behind the end", "HPE", board[:len(board)-1] + "", "", "CH1"},
		{"a short length", "HPE", "\x02\x03\x00\x02" + board, "", "CH1"},
		{"nothing", "HPE", "", "", "CH1"},
	} {
		root := fixture.Tree(t, map[string]string{
			"sys/class/dmi/id/sys_vendor": tt.vendor + "\n", "sys/class/dmi/id/chassis_serial": "CH1\n", "sys/firmware/dmi/tables/DMI": tt.table,
		})
		if got := inventory.Collect(root); got.Slot != tt.slot || got.Chassis != tt.chassis {
			t.Errorf("%s: got slot %q of chassis %q, want %q of %q", tt.name, got.Slot, got.Chassis, tt.slot, tt.chassis)
		}
	}
}

// TestDeviceTree: a Raspberry Pi has no DMI.
func TestDeviceTree(t *testing.T) {
	root := fixture.Tree(t, map[string]string{"proc/device-tree/model": "Raspberry Pi 4\x00", "proc/device-tree/serial-number": "10000000e0ff06da\x00"})
	if got := inventory.Collect(root); got.Product != "Raspberry Pi 4" || got.Serial != "10000000e0ff06da" {
		t.Errorf("got %+v", got)
	}
}

func FuzzLocation(f *testing.F) {
	f.Add([]byte(dmi(2, "\x00\x00\x00\x00\x00\x00\x01", "Slot 4") + locator))
	f.Add([]byte("\x02\x04\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, table []byte) {
		root := fixture.Tree(t, map[string]string{"sys/class/dmi/id/sys_vendor": "HPE\n", "sys/firmware/dmi/tables/DMI": string(table)})
		if got := inventory.Collect(root); len(got.Slot) > 70 || len(got.Chassis) > 70 {
			t.Errorf("got %+v", got)
		}
	})
}
