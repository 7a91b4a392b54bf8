package script_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"

	"drover/httpboot/script"
	"drover/pools"
	"drover/pools/resolve"
)

// exampleRenderer serves node-1 at 10.28.0.11.
func exampleRenderer() (*script.Renderer, *resolve.Plan) {
	m := mac("52:54:00:00:00:01")
	addr := netip.MustParseAddr("10.28.0.11")
	plan := &resolve.Plan{Node: "node-1", MAC: m, MACs: []pools.MAC{m}, Pool: "compute", Image: "debian-12", Address: addr}
	digest := strings.Repeat("0f", 32)
	r, err := script.New(script.Options{
		Machines: directory{farm{m: plan}, map[netip.Addr]pools.MAC{addr: m}},
		Boots:    &fakeBoots{},
		Images: images{"debian-12": {
			Name: "debian-12", Generation: digest, Squashfs: script.FileInfo{SHA256: digest},
		}},
		URL: "http://10.28.0.2",
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	return r, plan
}

func ExampleRenderer_IPXE() {
	r, plan := exampleRenderer()
	text, err := r.IPXE(plan)
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "initrd") {
			fmt.Print(line)
		}
	}
	// Output: initrd --name initrd http://10.28.0.2/images/debian-12/0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f/initrd || goto no-initrd
}

func ExampleFiles_Open() {
	r, plan := exampleRenderer()
	plan.NextBoot = pools.NextLocal
	f, err := r.TFTP().Open(plan.Address, "pxelinux.cfg/01-52-54-00-00-00-01")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	_, _ = io.Copy(os.Stdout, io.NewSectionReader(f, 0, f.Size()))
	// Output:
	// # drover
	// SAY drover: node node-1 (52:54:00:00:00:01) of pool compute boots from its local disk, for this boot
	// DEFAULT local
	// PROMPT 0
	//
	// LABEL local
	//   MENU LABEL drover: node node-1 boots from its local disk, for this boot
	//   LOCALBOOT 0
}
