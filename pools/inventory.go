package pools

import (
	"cmp"
	"fmt"
	"strings"

	"drover/internal/printable"
)

// Inventory is the hardware of a machine, as drover-init finds it before it fetches the
// root image. It comes from a machine that nobody has approved: see [Inventory.Clean].
type Inventory struct {
	Vendor  string `json:"vendor,omitempty"`  // of DMI: HPE
	Product string `json:"product,omitempty"` // of DMI: ProLiant m710x
	Serial  string `json:"serial,omitempty"`  // of DMI
	UUID    string `json:"uuid,omitempty"`    // of DMI
	Chassis string `json:"chassis,omitempty"` // serial number of the chassis, of DMI
	Slot    string `json:"slot,omitempty"`    // of the chassis, of DMI: 12
	BIOS    string `json:"bios,omitempty"`    // version
	CPU     string `json:"cpu,omitempty"`     // model of the first
	CPUs    int    `json:"cpus,omitempty"`    // threads
	Memory  int64  `json:"memory,omitempty"`  // in bytes

	Disks []InventoryDisk `json:"disks,omitempty"`
	NICs  []InventoryNIC  `json:"nics,omitempty"`
}

// InventoryDisk is a disk of an [Inventory].
type InventoryDisk struct {
	Name   string `json:"name"`
	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"`
	Size   int64  `json:"size"` // in bytes
}

// InventoryNIC is a network card of an [Inventory].
type InventoryNIC struct {
	Name   string `json:"name"`
	MAC    string `json:"mac"`
	Driver string `json:"driver,omitempty"`
	Link   bool   `json:"link"`            // has a carrier
	Speed  int    `json:"speed,omitempty"` // in Mbit/s

	LLDP *Neighbour `json:"lldp,omitempty"` // nil: no switch announced itself
}

// Neighbour is the port of a switch that a network card is connected to, as the switch
// announces it by LLDP (IEEE 802.1AB).
type Neighbour struct {
	System      string `json:"system,omitempty"`      // name of the switch
	Chassis     string `json:"chassis"`               // its chassis ID, often a MAC
	Port        string `json:"port"`                  // its port ID: ge-0/0/7
	Description string `json:"description,omitempty"` // of the port
}

// String returns the switch and its port, as match.lldp has them: leaf-7 ge-0/0/7.
func (n Neighbour) String() string { return cmp.Or(n.System, n.Chassis) + " " + n.Port }

// Limits of an inventory.
const (
	maxInventoryText  = 64 // bytes of a text
	maxInventoryItems = 16 // disks, and network cards
	maxInventorySize  = 1 << 53
)

// Clean returns the inventory with printable texts, and numbers and lists within limits.
func (v Inventory) Clean() Inventory {
	text := func(all ...*string) {
		for _, s := range all {
			*s = printable.Line(strings.TrimSpace(*s), maxInventoryText)
		}
	}
	text(&v.Vendor, &v.Product, &v.Serial, &v.UUID, &v.Chassis, &v.Slot, &v.BIOS, &v.CPU)
	v.CPUs, v.Memory = min(max(v.CPUs, 0), 1<<16), min(max(v.Memory, 0), maxInventorySize)
	disks := append([]InventoryDisk(nil), v.Disks[:min(len(v.Disks), maxInventoryItems)]...)
	for i := range disks {
		text(&disks[i].Name, &disks[i].Model, &disks[i].Serial)
		disks[i].Size = min(max(disks[i].Size, 0), maxInventorySize)
	}
	nics := append([]InventoryNIC(nil), v.NICs[:min(len(v.NICs), maxInventoryItems)]...)
	for i := range nics {
		text(&nics[i].Name, &nics[i].MAC, &nics[i].Driver)
		nics[i].Speed = min(max(nics[i].Speed, 0), 1<<24)
		if nics[i].LLDP != nil {
			n := *nics[i].LLDP
			text(&n.System, &n.Chassis, &n.Port, &n.Description)
			nics[i].LLDP = &n
		}
	}
	v.Disks, v.NICs = disks, nics
	return v
}

// DMI returns vendor and product, as match.dmi has them: HPE ProLiant m710x.
func (v Inventory) DMI() string { return strings.TrimSpace(v.Vendor + " " + v.Product) }

// String returns the inventory in one line.
func (v Inventory) String() string {
	var words []string
	if name := v.DMI(); name != "" {
		words = append(words, name)
	}
	for _, w := range []struct{ what, text string }{{"serial", v.Serial}, {"chassis", v.Chassis}, {"slot", v.Slot}} {
		if w.text != "" {
			words = append(words, w.what+" "+w.text)
		}
	}
	var disks int64
	for _, d := range v.Disks {
		disks += d.Size / 1e9
	}
	words = append(words, fmt.Sprintf("%d CPUs", v.CPUs), fmt.Sprintf("%.1f GiB", float64(v.Memory)/(1<<30)),
		fmt.Sprintf("%d disks of %d GB", len(v.Disks), disks), fmt.Sprintf("%d network cards", len(v.NICs)))
	for _, n := range v.NICs {
		if n.LLDP != nil {
			words = append(words, n.Name+" at "+n.LLDP.String())
		}
	}
	return strings.Join(words, ", ")
}
