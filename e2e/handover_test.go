package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// handover is a machine that goes from tenant to tenant, with a disk of each kind.
type handover struct {
	*testing.T
	ctx   context.Context
	site  *site.Site
	disks []lab.Disk
}

// pattern is what tenant a writes: see testdata/handover.yaml.
const pattern = "tenant a wrote this to the disk"

// TestDisksChangeHands: tenant a writes to an NVMe, an SCSI and a virtio disk. A pool that refuses
// ends the boot. Then the machine boots for tenant b, and the power fails in the middle of the
// erase. After the next boot no byte of a's is on the devices, and the disk of another owner is
// untouched.
func TestDisksChangeHands(t *testing.T) {
	b := buildTiny(t, t.TempDir())
	disksImage(t, b)
	h := &handover{T: t, site: open(t, b, site.Config{Name: "drover-e2e-hands", Farm: "testdata/handover.yaml"})}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	h.ctx = ctx
	foreign := make([]byte, 32<<20)
	copy(foreign[1080:], "\x53\xef")
	copy(foreign[20<<20:], pattern)
	for _, d := range []lab.Disk{{Serial: "NVME"}, {Serial: "SCSI", Bus: lab.SCSI}, {Serial: "VIRTIO", Bus: lab.Virtio}, {Serial: "FOREIGN"}} {
		d.File = filepath.Join(t.TempDir(), d.Serial)
		if err := os.WriteFile(d.File, foreign, 0o600); err != nil {
			t.Fatal(err)
		}
		if d.Serial != "FOREIGN" {
			if err := os.WriteFile(d.File, make([]byte, 64<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h.disks = append(h.disks, d)
	}
	sum := sha256.Sum256(foreign)

	h.call(http.MethodPost, "/api/v1/nodes", map[string]any{"pool": "a", "name": "n1", "macs": []string{handoverMAC}, "ip": "10.77.0.41"})
	h.boots("a-1", "tiny: mount /srv/virtio ext4 /dev/vd[a-z]1 with marker none", "tiny: done")
	h.boots("a-2", "tiny: mount /srv/virtio ext4 /dev/vd[a-z]1 with marker 1", "tiny: done")
	h.wants(true, pattern)

	h.moves("strict")
	h.boots("strict", "error: wipe: .*it has the data of pool a, and this node boots for pool strict, with diskChange: refuse")
	h.wants(true, pattern)

	h.moves("b")
	h.powerFails()
	h.boots("b-1", "wipe: /dev/nvme0n1: the data of pool a is erased", "disks: kubelet is /dev/nvme0n1, formatted", "tiny: mount /var/lib/kubelet ext4 /dev/nvme0n1p1 with marker none", "tiny: done")
	h.wants(false, pattern, "pool a")
	record := logBoot(ctx, t, h.site, handoverMAC)
	if step, ok := record.Reached(boots.StepWipe); !ok || !strings.Contains(step.Detail, "sda, vdb, nvme0n1: the data of pool a is erased: ") {
		t.Errorf("step wipe: %+v", step)
	}
	h.boots("b-2", "disks: kubelet is /dev/nvme0n1, mounted", "with marker 1", "tiny: done")
	record = logBoot(ctx, t, h.site, handoverMAC)
	if reached(record, boots.StepWipe) {
		t.Error("the second boot of a tenant erases again")
	}
	if got := sha256.Sum256([]byte(read(t, h.disks[3].File))); got != sum {
		t.Error("the foreign disk was written to")
	}
}

const handoverMAC = "52:54:00:77:04:02"

func (h *handover) call(method, path string, body any) {
	h.Helper()
	if err := h.site.Drover.Call(h.ctx, method, path, body, nil); err != nil {
		h.Fatal(err)
	}
}

func (h *handover) moves(pool string) {
	h.Helper()
	h.call(http.MethodPatch, "/api/v1/nodes/n1", map[string]any{"pool": pool})
}

// boots powers the machine on until its console has said all.
func (h *handover) boots(name string, lines ...string) {
	h.Helper()
	g, err := h.site.PowerOn(lab.Machine{Name: name, NICs: card(handoverMAC), Disks: h.disks})
	if err != nil {
		h.Fatal(err)
	}
	defer func() {
		story(h.T, h.site, g)
		if err := g.PowerOff(); err != nil {
			h.Error(err)
		}
	}()
	for _, line := range lines {
		says(h.ctx, h.T, g, line)
	}
}

// powerFails boots a machine with slow disks, and kills it when each of them says that its erase
// has begun.
func (h *handover) powerFails() {
	h.Helper()
	slow := append([]lab.Disk(nil), h.disks...)
	for i := range slow {
		slow[i].Rate = 2 << 20
	}
	g, err := h.site.PowerOn(lab.Machine{Name: "b-0", NICs: card(handoverMAC), Disks: slow})
	if err != nil {
		h.Fatal(err)
	}
	defer func() {
		story(h.T, h.site, g)
		if err := g.PowerOff(); err != nil { // SIGKILL
			h.Error(err)
		}
	}()
	fixture.Until(h.ctx, h.T, "the erase of three disks has begun", func() (bool, error) { return h.count(`"erasing":true`) == 3, nil })
	says(h.ctx, h.T, g, "erasing the data of pool a")
}

// count returns the number of the machine's own disks that have a text.
func (h *handover) count(text string) (n int) {
	h.Helper()
	for _, d := range h.disks[:3] {
		if bytes.Contains([]byte(read(h.T, d.File)), []byte(text)) {
			n++
		}
	}
	return n
}

// wants checks that all disks have the texts, or none.
func (h *handover) wants(all bool, texts ...string) {
	h.Helper()
	for _, text := range texts {
		if n := h.count(text); n != map[bool]int{true: 3}[all] {
			h.Errorf("%q is on %d disks", text, n)
		}
	}
}
