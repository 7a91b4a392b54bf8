package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
	"drover/imagebuild/manifest"
	"drover/pools/boots"
)

// TestImageFetchSurvives boots a node from a root image with a corrupted byte. The node
// must refuse that chunk by its digest, report it, and fetch no more than the chunk again.
// In the middle of the rest the server is killed for 20 seconds, and the node must resume
// it. Config and events go by HTTPS.
func TestImageFetchSurvives(t *testing.T) {
	b := build(t)
	copied := *b
	copied.Images = t.TempDir() // the test corrupts an image
	if err := os.CopyFS(copied.Images, os.DirFS(b.Images)); err != nil {
		t.Fatal(err)
	}
	s := open(t, &copied, site.Config{Name: "drover-e2e-fetch", Farm: "testdata/fetch.yaml"})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	capture := record(ctx, t, s, "wire")
	heal, size := corrupt(t, copied.Images)

	const mac = "52:54:00:77:02:01"
	g := powerOn(t, s, lab.Machine{Name: "n2", NICs: card(mac)})

	want := fmt.Sprintf("chunk %d of %d", size/2/manifest.ChunkSize+1, (size+manifest.ChunkSize-1)/manifest.ChunkSize)
	fixture.Until(ctx, t, "the corrupted chunk was refused, and reported", func() (bool, error) {
		boot := bootOf(ctx, t, s, mac)
		if reached(boot, boots.StepImage) {
			t.Fatal("the corrupted chunk was taken")
		}
		return slices.ContainsFunc(boot.Steps, func(e boots.StepTime) bool {
			return e.Step == boots.StepImage && strings.Contains(e.Error, want) && strings.Contains(e.Error, "sha256")
		}), nil
	})
	heal()

	// Slow enough to interrupt the transfer.
	tap := g.Taps[0]
	if err := s.Throttle(tap, "100mbit"); err != nil {
		t.Fatal(err)
	}
	before, err := s.Sent(tap)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "a third of the image came", func() (bool, error) {
		now, err := s.Sent(tap)
		return now-before > size/3, err
	})
	if err := s.Drover.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Second) // the server is down for this time
	if err := s.StartDrover(ctx, s.Drover); err != nil {
		t.Fatal(err)
	}
	t.Log("the server is back after 20 s")
	if err := s.Throttle(tap, ""); err != nil {
		t.Fatal(err)
	}
	fixture.Until(ctx, t, "the node is about to start its init", func() (bool, error) {
		return reached(bootOf(ctx, t, s, mac), boots.StepSwitch), nil
	})
	w := searchWire(t, capture())
	resumed(t, w, size)
	// The config has HTTPS: config and events went to the listener with the pinned key,
	// also after the restart.
	for _, line := range w.requests {
		if strings.HasPrefix(line, "POST ") {
			t.Errorf("in clear: %q", line)
		}
	}
}

// resumed checks that the last fetch resumed the one before.
func resumed(t *testing.T, w wire, size int64) {
	t.Helper()
	if !slices.ContainsFunc(w.requests, func(line string) bool {
		return strings.HasPrefix(line, "Range: bytes=") && line != "Range: bytes=0-"
	}) {
		t.Errorf("the node never asked for the rest of the image; it asked\n%s", strings.Join(w.requests, "\n"))
	}
	if !slices.ContainsFunc(w.answers, func(line string) bool { return strings.Contains(line, " 206 ") }) {
		t.Errorf("no answer was partial: %q", w.answers)
	}
	// The image, the kernel and the initrd, and the bytes in flight when the node refused a
	// chunk, and when the server was killed: not twice the image.
	if w.served < size || w.served > 2*size {
		t.Errorf("%d bytes were served, want little more than the %d of the image", w.served, size)
	}
}

// corrupt changes a byte in the middle of the current squashfs below images. The
// function heal restores it.
func corrupt(t *testing.T, images string) (heal func(), size int64) {
	t.Helper()
	path := filepath.Join(images, site.Image, "current", "root.squashfs")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	at := info.Size() / 2
	flip := func() {
		t.Helper()
		var b [1]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 0xff
		if _, err := f.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
	}
	flip()
	return flip, info.Size()
}
