package package_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
)

// Everything that make dist makes is in the folder that DIST names.
func TestDist(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", "-C", "../..", "dist", "DIST=/elsewhere").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"DIST='/elsewhere' deploy/package/build", "-o /elsewhere/drover-image.tar", "cd '/elsewhere' && sha256sum"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "dist/") {
		t.Errorf("something goes to dist:\n%s", out)
	}
}

// A folder with files of others is left alone.
func TestDistOfOthers(t *testing.T) {
	dir := fixture.Tree(t, map[string]string{"thesis.txt": "years of work"})
	cmd := exec.CommandContext(t.Context(), "./build", "", "none")
	cmd.Env = append(os.Environ(), "DIST="+dir)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), dir+" is not empty") {
		t.Errorf("got %v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "thesis.txt")); err != nil {
		t.Error(err)
	}
}
