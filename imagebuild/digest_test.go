package imagebuild_test

import (
	"crypto/sha512"
	"encoding/hex"
	"strings"
	"testing"
)

// TestSHA512: a layer may have a digest of SHA-512, which is checked as well.
func TestSHA512(t *testing.T) {
	packed := layerOf(t, with(machine(), nil, "opt/v=512")...)
	sum := sha512.Sum512(packed)
	digest := hex.EncodeToString(sum[:])
	for want, stored := range map[string][]byte{"": packed, "blob sha512:" + digest + " is damaged": append([]byte{'x'}, packed[1:]...)} {
		l := newLayout(t)
		config := l.json("config", map[string]any{"os": "linux", "architecture": "amd64", "rootfs": map[string]any{"diff_ids": []string{"x"}}})
		l.files["blobs/sha512/"+digest] = stored
		l.add("", l.json("manifest", map[string]any{"config": config, "layers": []any{map[string]any{"digest": "sha512:" + digest, "size": len(packed)}}}))
		b := builder(t)
		b.Source = "oci:" + l.dir()
		if want == "" {
			if got := content(t, build(t, b), "opt/v"); got != "512" {
				t.Errorf("opt/v is %q", got)
			}
			continue
		}
		if _, err := b.Build(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}
