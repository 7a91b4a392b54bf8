package script_test

import (
	"net/netip"
	"regexp"
	"testing"
	"time"

	"drover/pools/boots"
)

// noDisk is the storage of a table in RAM.
type noDisk struct{}

func (noDisk) Enqueue(...boots.Change) (wait func() error, err error) {
	return func() error { return nil }, nil
}

// A request by TFTP begins a boot before anyone has received an answer: one packet with a
// machine's address voided the nonce that the machine had from its script.
func TestForgedRequestByTFTP(t *testing.T) {
	nonceOf := regexp.MustCompile(`drover\.nonce=(\w+)`)
	addr := netip.MustParseAddr("127.0.0.1")
	for name, script := range map[string]func(w *world) string{
		"iPXE": func(w *world) string { return w.ipxe(t, macBIOS) },
		"GRUB by HTTP": func(w *world) string {
			w.mustOpen(t, "127.0.0.1", node1GRUB) // forged
			f, err := w.r.HTTP().Open(addr, node1GRUB)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, f.Size())
			_, _ = f.ReadAt(b, 0)
			return string(b)
		},
		"pxelinux": func(w *world) string { return w.mustOpen(t, "127.0.0.1", node1PXE) },
	} {
		t.Run(name, func(t *testing.T) {
			table := boots.NewTable(noDisk{}, time.Now)
			table.NeedDiscover = true
			w := newWorld(t, func(w *world) { w.Boots = table })
			table.Discover(w.farm[macBIOS], time.Now())
			nonce := nonceOf.FindStringSubmatch(script(w))[1]
			for range 5 {
				w.r.Forget(macBIOS) // the time for which a boot is used again is over
				w.mustOpen(t, "127.0.0.1", "pxelinux.cfg/default")
			}
			if err := table.Claim(macBIOS, nonce, []byte("key")); err != nil {
				t.Errorf("the machine's config request: %v", err)
			}
		})
	}
}

// The files that begin a boot say which.
func TestFileThatBeginsABoot(t *testing.T) {
	w := newWorld(t, nil)
	addr := netip.MustParseAddr("127.0.0.1")
	for name, want := range map[string]bool{
		node1PXE: true, node1GRUB: true, "cmdline.txt": true, "grub/grub.cfg": false, "images/debian-12/" + generation + "/kernel": false,
	} {
		f, err := w.r.TFTP().Open(addr, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Begins; (got.Nonce != "") != want || want && got.MAC != macBIOS {
			t.Errorf("%s begins %v, want a boot: %v", name, got, want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
