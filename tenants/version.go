package tenants

import (
	"fmt"
)

// oldestMinor is the oldest minor version of Kubernetes 1 that is run: kubeadm of 1.31 is
// the first that reads v1beta4 of its configuration.
const oldestMinor = 31

// unreachable returns the reason why a control plane that runs version from cannot go to
// version to, or "". An empty from is a new control plane.
func unreachable(from, to string) string {
	minor, patch, ok := parse(to)
	if !ok {
		return fmt.Sprintf("%q is not a version of Kubernetes; write v1.37.1", to)
	}
	if minor < oldestMinor {
		return fmt.Sprintf("%s is too old; v1.%d.0 is the oldest that drover runs", to, oldestMinor)
	}
	oldMinor, oldPatch, ok := parse(from)
	switch {
	case !ok:
		return ""
	case minor < oldMinor || minor == oldMinor && patch < oldPatch:
		return fmt.Sprintf("%s runs, and etcd's data cannot go back to %s; set version to %s or later", from, to, from)
	case minor > oldMinor+1:
		return fmt.Sprintf("%s runs, and %s is more than one minor version up; go to a v1.%d first", from, to, oldMinor+1)
	}
	return ""
}

// older reports whether version a is before b. What is no version is neither before nor after.
func older(a, b string) bool {
	minor, patch, ok := parse(a)
	otherMinor, otherPatch, otherOK := parse(b)
	return ok && otherOK && (minor < otherMinor || minor == otherMinor && patch < otherPatch)
}

// newer returns the newer of two versions. What is no version is older than all.
func newer(a, b string) string {
	if _, _, ok := parse(a); ok && !older(a, b) {
		return a
	}
	if _, _, ok := parse(b); ok {
		return b
	}
	return ""
}

// parse reads a version such as v1.37.1.
func parse(version string) (minor, patch int, ok bool) {
	n, err := fmt.Sscanf(version, "v1.%d.%d", &minor, &patch)
	ok = err == nil && n == 2 && version == fmt.Sprintf("v1.%d.%d", minor, patch)
	return minor, patch, ok && minor >= 0 && patch >= 0
}
