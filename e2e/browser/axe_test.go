package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"drover/e2e/buildcache"
	"drover/e2e/fixture"
)

// The checker of accessibility, at an exact version.
const (
	axePackage = "axe-core@4.10.3"
	axeDigest  = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg==" // SHA-512
	axeFile    = "axe-core-4.10.3.tgz"
)

// axe returns the script of the checker, which npm downloads once. It is empty on a host
// without npm.
var axe = sync.OnceValues(func() (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", nil
	}
	dir, err := buildcache.CacheDir()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, axeFile)
	if script, err := readAxe(file); err == nil {
		return script, nil
	}
	fresh, err := os.MkdirTemp(dir, "axe-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	cmd := exec.Command(npm, "pack", axePackage, "--pack-destination", fresh)
	cmd.Dir = fresh
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm: %w\n%s", err, said)
	}
	script, err := readAxe(filepath.Join(fresh, axeFile))
	if err == nil {
		err = os.Rename(filepath.Join(fresh, axeFile), file)
	}
	return script, err
})

// readAxe returns the script in a package that has the right digest.
func readAxe(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if sum := sha512.Sum512(content); base64.StdEncoding.EncodeToString(sum[:]) != axeDigest {
		return "", fmt.Errorf("%s has another digest than the one that is pinned", file)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return "", err
	}
	archive := tar.NewReader(unzipped)
	for {
		h, err := archive.Next()
		if err != nil {
			return "", errors.Join(errors.New("there is no axe.min.js in "+file), err)
		}
		if h.Name == "package/axe.min.js" {
			script, err := io.ReadAll(archive)
			return string(script), err
		}
	}
}

// accessible fails the test if the checker finds a serious, critical or moderate fault.
func (b *Tab) accessible(what string) {
	b.t.Helper()
	script, err := axe()
	switch {
	case err != nil:
		b.t.Fatal(err)
	case script == "" && fixture.Must():
		b.t.Fatalf("%s: accessibility cannot be checked without npm, which .ci/need installs", what)
	case script == "":
		b.t.Logf("%s: NOT TESTED: accessibility, without npm", what)
		return
	}
	Value[bool](b, script+"; true")
	faults := Value[[]string](b, `axe.run().then((r) => r.violations.filter((v) => v.impact !== "minor").map((v) => v.impact + " " + v.id + ": " + v.help + "\n" + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.failureSummary).join("\n")))`)
	if len(faults) > 0 {
		b.t.Errorf("%s:\n%s", what, strings.Join(faults, "\n"))
	}
}
