package ifname

import "testing"

// SetUdevadm sets the paths of udev's program for a test.
func SetUdevadm(t *testing.T, paths ...string) {
	old := udevadm
	udevadm = paths
	t.Cleanup(func() { udevadm = old })
}
