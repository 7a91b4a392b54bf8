package imagebuild_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestBuildUnprivileged: any user builds an image, and it is the same as root's.
func TestBuildUnprivileged(t *testing.T) {
	const (
		nobody   = 65534
		variable = "DROVER_TEST_IMAGE"
	)
	id := build(t, builder(t, machine()...)).ID
	if want := os.Getenv(variable); want != "" && id != want {
		t.Errorf("user %d got image %s, want %s, as root", os.Geteuid(), id, want)
	}
	if os.Geteuid() != 0 {
		return
	}
	dir, err := os.MkdirTemp("", "drover-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	// The directory of the test's program may be root's alone.
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, variable+"="+id)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
}
