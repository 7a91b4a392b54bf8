package controlplane

import (
	"path"
	"slices"
	"strings"
)

// fileFlags are the ends of the names of flags whose value is a file or a folder.
var fileFlags = []string{"-file", "-config", "-kubeconfig", "-dir", "-ca-cert", "audit-log-path"}

// podFolders are those that the programs of a control plane have: what drover mounts, and what
// their images and the container runtime bring.
var podFolders = []string{"/etc/kubernetes/pki", "/etc/drover", "/run/konnectivity", "/tmp", "/var/lib/etcd", "/etc/ssl", "/usr", "/dev", "/proc", "/var/run/kubernetes"}

// namesFile reports whether the value of a flag is a file or a folder.
func namesFile(flag, value string) bool {
	return value != "" && value != "-" && slices.ContainsFunc(fileFlags, func(end string) bool { return strings.HasSuffix(flag, end) || flag == end[1:] })
}

// inPod reports whether a file can be in the pod of a control plane.
func inPod(file string) bool {
	file = path.Clean(file)
	return slices.ContainsFunc(podFolders, func(dir string) bool { return file == dir || strings.HasPrefix(file, dir+"/") })
}
