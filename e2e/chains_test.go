package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// chain is one way from power-on to a running system, or to its refusal.
type chain struct {
	name    string // the row of the table; the node is "chain-" and the name
	what    string // description for the table
	machine lab.Machine
	medium  string   // the format of its boot medium: iso or img
	loaders []string // the files that its firmware must fetch
	console []string // regular expressions for the output of firmware and kernel
	tiny    []string // likewise for the tiny system
	refused string   // regular expression for the refusal on the console; nothing boots
}

// chains returns the chains of TestChains. Machines with Secure Boot have the keys that
// servers are sold with.
func chains() []chain {
	const (
		grub   = "GRUB, signed"
		shim64 = "shimx64.efi"
	)
	return []chain{
		{name: "e", what: "shim, " + grub + ", signed kernel by TFTP",
			machine: lab.Machine{Firmware: lab.SecureBoot, NICs: card("52:54:00:77:ae:01")},
			loaders: []string{shim64, "grubx64.efi"},
			console: []string{"UEFI Secure Boot is enabled"}, tiny: []string{`tiny: lockdown none \[integrity\]`}},
		{name: "f", what: "arm64: shim, " + grub + ", kernel by TFTP",
			machine: lab.Machine{Firmware: lab.UEFIarm64, NICs: card("52:54:00:77:af:01")},
			loaders: []string{"shimaa64.efi", "grubaa64.efi"},
			tiny:    []string{"tiny: kernel .* on aarch64"}},
		{name: "g", what: "arm64: boot.scr.uimg, pxelinux.cfg, kernel by TFTP",
			machine: lab.Machine{Firmware: lab.UBootArm64, NICs: []lab.NIC{{MAC: "52:54:00:77:a0:01", Model: "e1000", Boot: true}}},
			console: []string{"Retrieving file: pxelinux.cfg/01-52-54-00-77-a0-01"}, tiny: []string{"tiny: kernel .* on aarch64"}},
		{name: "g-wrapped", what: "arm64: the same with uImage and uInitrd, as the HPE m400",
			machine: lab.Machine{Firmware: lab.UBootArm64, NICs: []lab.NIC{{MAC: "52:54:00:77:a0:02", Model: "e1000", Boot: true}}},
			console: []string{"Image Type: .*AArch64 Linux Kernel Image", "Image Type: .*RAMDisk Image"}, tiny: []string{"tiny: kernel .* on aarch64"}},
		{name: "h", what: "two cards, the first one's cable leads nowhere",
			machine: lab.Machine{NICs: []lab.NIC{
				{MAC: "52:54:00:77:a1:01", Boot: true, Dark: true}, {MAC: "52:54:00:77:a1:02", Boot: true}}},
			tiny: []string{"tiny: card .* 52:54:00:77:a1:02 has 10.77.0.18/24"}},
		{name: "m", what: "CD of drover media: shim, signed GRUB and kernel by TFTP", medium: "iso",
			machine: lab.Machine{Firmware: lab.SecureBoot, NICs: card("52:54:00:77:a3:01")},
			console: []string{"drover: asking 10.77.0.1 what to boot", "UEFI Secure Boot is enabled"}},
		{name: "m-disk", what: "disk of drover media: shim, GRUB, kernel by TFTP", medium: "img",
			machine: lab.Machine{Firmware: lab.UEFI, NICs: card("52:54:00:77:a3:02")},
			console: []string{"drover: asking 10.77.0.1 what to boot"}},
		{name: "a", what: "iPXE in the card",
			machine: lab.Machine{NICs: card("52:54:00:77:aa:01")},
			tiny:    []string{"tiny: kernel .* on x86_64"}},
		{name: "b", what: "an old iPXE in the card, undionly.kpxe",
			machine: lab.Machine{NICs: card("52:54:00:77:ab:01")},
			loaders: []string{"chain.ipxe", "undionly.kpxe"}},
		{name: "p", what: "an old iPXE in the card, PXELINUX with a menu, kernel by TFTP",
			machine: lab.Machine{NICs: card("52:54:00:77:a4:01")},
			loaders: []string{"pxelinux.0", "ldlinux.c32"}, console: []string{"PXELINUX 6", "boot: "}},
		{name: "c", what: "PXE, snponly.efi",
			machine: lab.Machine{Firmware: lab.UEFI, NICs: card("52:54:00:77:ac:01")},
			loaders: []string{"snponly.efi"}, console: []string{"Start PXE over IPv4"}},
		{name: "d", what: "HTTP Boot, snponly.efi",
			machine: lab.Machine{Firmware: lab.UEFI, HTTPBoot: true, NICs: card("52:54:00:77:ad:01")},
			loaders: []string{"snponly.efi"}, console: []string{"Start HTTP Boot over IPv4"}},
		{name: "e-loader", what: "unsigned loader",
			machine: lab.Machine{Firmware: lab.SecureBoot, NICs: card("52:54:00:77:ae:02")},
			loaders: []string{"snponly.efi"}, refused: "BdsDxe: failed to load .* (Access Denied|Security Violation)"},
		{name: "e-second", what: "shim, unsigned second loader",
			machine: lab.Machine{Firmware: lab.SecureBoot, NICs: card("52:54:00:77:ae:03")},
			loaders: []string{"unsigned/shimx64.efi", "unsigned/grubx64.efi"}, refused: "Security Violation"},
		{name: "e-kernel", what: "shim, " + grub + ", unsigned kernel",
			machine: lab.Machine{Firmware: lab.SecureBoot, NICs: card("52:54:00:77:ae:04")},
			loaders: []string{shim64, "grubx64.efi"}, refused: "bad shim signature"},
	}
}

// TestChains boots a machine of each kind of firmware, up to a system that prints its
// name and reports to the server, and prints a table. The system is a tiny one; with
// DROVER_E2E_ALL=1 it is a whole Debian, except on machines that are too slow.
func TestChains(t *testing.T) {
	loaders := t.TempDir()
	b := buildTiny(t, loaders)
	addLoaders(t, loaders)
	farm, whole := "testdata/chains.yaml", whole()
	if whole {
		build(t) // the Debian image is in the same directory
		text := strings.ReplaceAll(read(t, farm), "image: "+site.TinyAMD64, "image: "+site.Image)
		farm = filepath.Join(t.TempDir(), "chains.yaml")
		if err := os.WriteFile(farm, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, b, site.Config{Name: "drover-e2e-chains", Farm: farm})
	var rows table
	t.Run("boot", func(t *testing.T) {
		for _, c := range chains() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				r := row{chain: c, result: "FAILED"}
				defer func() { rows.add(r) }()
				c.boot(t, b, s, whole && c.machine.Firmware.AMD64(), &r)
			})
		}
	})
	t.Logf("\n%s", rows.String())
}

// addLoaders adds two loaders to a directory: the script for iPXE in a ROM, as in
// docs/loaders.md, and a shim whose second loader is not signed.
func addLoaders(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS("testdata/loaders")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "unsigned"), 0o755); err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{"shimx64.efi": "shimx64.efi", "grubx64.efi": "snponly.efi"} {
		if err := lab.CopyFile(filepath.Join(dir, "unsigned", to), filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
}

// boot powers the chain's machine on, and waits until its system runs or its firmware
// refuses to start it.
func (c chain) boot(t *testing.T, b *site.Built, s *site.Site, whole bool, r *row) {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	m := c.machine
	m.Name = "chain-" + c.name
	if c.medium != "" {
		m.Medium = c.writeMedium(ctx, t, b)
	}
	cabled := len(m.NICs) - 1
	g := powerOn(t, s, m)
	mac := m.NICs[cabled].MAC
	if c.refused != "" {
		says(ctx, t, g, c.refused)
		r.seconds = time.Since(g.Started).Seconds()
		bootsNothing(t, g)
	} else {
		c.comesUp(ctx, t, g, whole, r)
		fixture.Until(ctx, t, m.Name+" is online", func() (bool, error) {
			return reached(bootOf(ctx, t, s, mac), boots.StepOnline), nil
		})
	}
	c.fetched(ctx, t, s, mac)
	logBoot(ctx, t, s, mac)
	var err error
	if r.bytes, err = s.Sent(g.Taps[cabled]); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		return
	}
	r.result = "boots " + site.Image
	switch {
	case c.refused != "":
		r.result = "refused"
	case !whole:
		r.result = "boots"
	}
}

// writeMedium writes the chain's boot medium with drover media.
func (c chain) writeMedium(ctx context.Context, t *testing.T, b *site.Built) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "boot."+c.medium)
	out, err := exec.CommandContext(ctx, b.Drover, "media", "--server", "10.77.0.1", "--loaders", b.Loaders, file).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// comesUp waits for all expected lines on the console.
func (c chain) comesUp(ctx context.Context, t *testing.T, g *lab.Guest, whole bool, r *row) {
	wants := append([]string{"tiny: host " + g.Machine.Name, "tiny: note drover was here"}, c.tiny...)
	if whole {
		wants = []string{g.Machine.Name + " login:"} // systemd prints nothing after it, and multi-user.target comes later
	}
	says(ctx, t, g, wants[0])
	r.seconds = time.Since(g.Started).Seconds()
	for _, want := range append(wants[1:], c.console...) {
		says(ctx, t, g, want)
	}
}

// fetched waits until the server's log shows that the machine fetched its loaders.
func (c chain) fetched(ctx context.Context, t *testing.T, s *site.Site, mac string) {
	plan, err := s.Expect(mac)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range c.loaders {
		fixture.Until(ctx, t, "its firmware has "+want, func() (bool, error) {
			for line := range strings.Lines(read(t, s.Drover.Log())) {
				if strings.Contains(line, "level=INFO") && strings.Contains(line, want) && strings.Contains(line, plan.Address.String()) {
					return true, nil
				}
			}
			return false, nil
		})
	}
}

// bootsNothing fails the test if a kernel has started.
func bootsNothing(t *testing.T, g *lab.Guest) {
	t.Helper()
	for line := range strings.Lines(read(t, g.Console)) {
		if strings.Contains(line, "EFI stub:") || strings.Contains(line, "Linux version") {
			t.Errorf("a kernel has started: %s", line)
		}
	}
}

// row is the result of a chain.
type row struct {
	chain
	seconds float64 // from power-on to the first line of its system
	bytes   int64   // received by the machine
	result  string
}

// table collects rows.
type table struct {
	mu   sync.Mutex
	rows []row
}

func (t *table) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
}

func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortFunc(t.rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHAIN\tFIRMWARE\tBY\tSECONDS\tMB\tRESULT")
	for _, r := range t.rows {
		firmware := string(r.machine.Firmware)
		if firmware == "" {
			firmware = string(lab.BIOS)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f\t%.1f\t%s\n", r.name, firmware, r.what, r.seconds, float64(r.bytes)/1e6, r.result)
	}
	_ = w.Flush() // writes to memory: no error
	return b.String()
}
