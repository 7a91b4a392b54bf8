package script_test

import (
	"strings"
	"testing"

	"drover/httpboot/script"
)

// rebuilt is an image whose name means another generation with each look-up.
type rebuilt struct {
	images
	n int
}

func (r *rebuilt) Image(ref string) (script.Image, error) {
	img, err := r.images.Image(ref)
	r.n++
	img.Generation = strings.Repeat(string("0123456789abcdef"[r.n%16]), 64)
	img.Squashfs.SHA256 = img.Generation
	return img, err
}

// A boot gets one generation whole, however often the image is built meanwhile, and its record
// has that generation. The plan, which others share, has none.
func TestOneGeneration(t *testing.T) {
	w := newWorld(t, func(w *world) { w.Images = &rebuilt{images: w.images} })
	for n := range 50 {
		text := w.ipxe(t, macBIOS)
		if len(w.boots.generations) != n+1 {
			t.Fatalf("got %d boots, want %d", len(w.boots.generations), n+1)
		}
		id := w.boots.generations[n]
		dir := "/images/debian-12/" + id + "/"
		for _, want := range []string{dir + "kernel", dir + "initrd", "drover.root=" + dir + "root.squashfs", "drover.image=sha256:" + id} {
			if !strings.Contains(text, want) {
				t.Fatalf("boot %d: no %s in\n%s", n, want, text)
			}
		}
		if strings.Count(text, "/images/debian-12/") != strings.Count(text, dir) {
			t.Fatalf("boot %d has files of several generations:\n%s", n, text)
		}
	}
	if got := w.farm[macBIOS].Generation; got != "" {
		t.Errorf("the shared plan has the generation %s", got)
	}
}
