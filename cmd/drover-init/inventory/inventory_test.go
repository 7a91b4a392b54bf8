package inventory_test

import (
	"reflect"
	"testing"

	"drover/cmd/drover-init/inventory"
	"drover/e2e/fixture"
	"drover/pools"
)

func TestCollect(t *testing.T) {
	root := fixture.Tree(t, map[string]string{
		"sys/class/dmi/id/sys_vendor": "HPE\n", "sys/class/dmi/id/product_name": "ProLiant m710x\n", "sys/class/dmi/id/product_serial": "CN1\n",
		"proc/cpuinfo":           "processor\t: 0\nmodel name\t: Xeon D\n\nprocessor\t: 1\nmodel name\t: Xeon D\n",
		"proc/meminfo":           "MemTotal:       32768 kB\nMemFree: 1 kB\n",
		"sys/block/nvme0n1/size": "1000\n", "sys/block/nvme0n1/device/model": "SSD 9 \n", "sys/block/nvme0n1/device/serial": "S1\n",
		"sys/block/vda/size": "2000\n", "sys/block/vda/serial": "V1\n", "sys/block/vda/device/x": "",
		"sys/block/loop0/size": "5\n", "sys/block/sdb/size": "5\n", "sys/block/sdb/removable": "1\n", "sys/block/sdb/device/x": "",
		"sys/class/net/eth0/address": "52:54:00:00:00:01\n", "sys/class/net/eth0/carrier": "1\n", "sys/class/net/eth0/speed": "10000\n", "sys/class/net/eth0/device/driver": "->../../bus/mlx4_core",
		"sys/class/net/eth1/address": "52:54:00:00:00:02\n", "sys/class/net/eth1/speed": "-1\n", "sys/class/net/eth1/device/x": "",
		"sys/class/net/lo/address": "00:00:00:00:00:00\n",
	})
	want := pools.Inventory{
		Vendor: "HPE", Product: "ProLiant m710x", Serial: "CN1", CPU: "Xeon D", CPUs: 2, Memory: 32 << 20,
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
