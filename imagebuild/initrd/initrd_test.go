package initrd_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"drover/imagebuild/initrd"

	"drover/e2e/fixture"
)

// TestCpio: the program cpio reads an archive.
func TestCpio(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		fixture.Missing(t, err)
	}
	var b bytes.Buffer
	if err := initrd.Cpio(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len()%512 != 0 {
		t.Errorf("length is %d, want a multiple of 512", b.Len())
	}
	cmd := exec.Command("cpio", "-itvn")
	cmd.Env = append(cmd.Environ(), "TZ=UTC", "LC_ALL=C")
	cmd.Stdin = &b
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cpio: %v", err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"drwxr-xr-x 2 0 0 0 Jan 1 1970 dev",
		"crw------- 1 0 0 5, 1 Jan 1 1970 dev/console",
		"lrwxrwxrwx 1 0 0 7 Jan 1 1970 lib -> usr/lib",
		"-rwxr-xr-x 1 0 0 7 Jan 1 1970 init",
		"-rw-r--r-- 1 0 0 0 Jan 1 1970 empty",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestInitrdModulesAreNames(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		names := initrd.DefaultModules(arch)
		for i, name := range names {
			if strings.ContainsAny(name, "/.") || slices.Contains(names[:i], name) {
				t.Errorf("%q is no module name, or is listed twice", name)
			}
		}
		if got, want := slices.Contains(names, "dwmac-generic"), arch == "arm64"; got != want {
			t.Errorf("%s: a card of systems on a chip is in the list: %v, want %v", arch, got, want)
		}
	}
}
