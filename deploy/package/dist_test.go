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
	for _, want := range []string{"DIST='/elsewhere' WITH='' deploy/package/build", "cd '/elsewhere' && sha256sum *.deb *.tar.gz *.tgz *.tar *.json"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "dist/") {
		t.Errorf("something goes to dist:\n%s", out)
	}
}

// A folder in the checkout does not make the checkout a modified one, which the version of the
// next build would say.
func TestDistInCheckout(t *testing.T) {
	dir, err := os.MkdirTemp("../..", "dist-of-a-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	dist, err := filepath.Abs(filepath.Join(dir, "dist"))
	if err != nil {
		t.Fatal(err)
	}
	noGo := fixture.Tree(t, map[string]string{"go": "#!/bin/sh\necho amd64; [ \"$1\" = env ]\n"})
	if err := os.Chmod(filepath.Join(noGo, "go"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "./build", "", "none")
	cmd.Env = append(os.Environ(), "DIST="+dist, "GO="+filepath.Join(noGo, "go"))
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("built without a compiler: %s", out)
	}
	if _, err := os.Stat(filepath.Join(dist, "share/man1")); err != nil {
		t.Error(err) // it has begun
	}
	status := exec.CommandContext(t.Context(), "git", "status", "--porcelain", "--", dist)
	if out, err := status.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
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
