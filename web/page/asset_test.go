package page

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVendored: the files of htmx are those that its README names, with these digests.
func TestVendored(t *testing.T) {
	readme, err := os.ReadFile("asset/htmx/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("asset/htmx/*")
	if err != nil || len(files) != 4 {
		t.Fatalf("got %q, %v", files, err)
	}
	for _, file := range files {
		if file == "asset/htmx/README.md" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if row := "| `" + filepath.Base(file) + "` | " + hex.EncodeToString(sum[:]) + " |"; !strings.Contains(string(readme), row) {
			t.Errorf("the README does not have %s", row)
		}
	}
	if script, err := os.ReadFile("asset/htmx/htmx.min.js"); err != nil || !strings.Contains(string(script), `this.version="4.0.1"`) || !strings.Contains(string(readme), "htmx.org@4.0.1") {
		t.Errorf("another version: %v", err)
	}
}
