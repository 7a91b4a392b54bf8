// Package kubelet has the rule which arguments a kubelet may be given: the config is checked with
// it, and so is each join.
package kubelet

import (
	"fmt"
	"strings"

	"drover/pools"
)

// The longest name and value of a kubelet argument, in bytes.
const (
	maxFlag  = 63
	maxValue = 4096
)

// CheckArg returns an error with a hint if a kubelet argument, its name without dashes
// and its value, may not be in kubeletArgs.
func CheckArg(flag, value string) error {
	switch flag {
	case "node-labels":
		return pools.Hint("use labels: instead", "kubelet argument node-labels is made from labels")
	case "register-with-taints":
		return pools.Hint("use taints: instead", "kubelet argument register-with-taints is made from taints")
	case "bootstrap-kubeconfig", "config", "hostname-override", "kubeconfig", "register-node":
		// They would undo the join, or give the Node another name.
		return pools.Hint("remove it", "kubelet argument %s is set by the join itself", flag)
	}
	switch {
	case strings.HasPrefix(flag, "-"):
		return pools.Hint("write "+strings.TrimLeft(flag, "-"), "kubelet argument %.100q starts with dashes", flag)
	case !isFlag(flag):
		return pools.Hint(fmt.Sprintf("write it as max-pods, at most %d characters", maxFlag), "%.100q is not the name of a kubelet argument", flag)
	case len(value) > maxValue || strings.ContainsFunc(value, needsQuotes):
		// kubeadm writes all arguments into one line of an environment file, which systemd
		// splits at white space.
		return pools.Hint("kubeadm hands it on through a line that systemd splits", "kubelet argument %s: its value has white space, quotes, $ or control characters, or is too long", flag)
	}
	return nil
}

// isFlag reports whether s is of the form of the kubelet's own flags, as max-pods.
func isFlag(s string) bool {
	other := func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	return s != "" && len(s) <= maxFlag && s[0] >= 'a' && !strings.HasSuffix(s, "-") && !strings.ContainsFunc(s, other)
}

// needsQuotes reports whether r can not be in the value of a kubelet argument.
func needsQuotes(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'\\$`", r) }
