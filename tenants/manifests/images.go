package manifests

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// The versions of images that do not follow that of Kubernetes.
const (
	konnectivityVersion = "v0.36.0"
	corednsVersion      = "v1.14.6"
	flannelVersion      = "v0.28.4"
	flannelCNIVersion   = "v1.9.1-flannel1"
)

// images are the images by the name that templates use. V stands for the version of
// Kubernetes.
var images = map[string]string{
	"etcd":                    "registry.k8s.io/etcd:ETCD",
	"kube-apiserver":          "registry.k8s.io/kube-apiserver:V",
	"kube-controller-manager": "registry.k8s.io/kube-controller-manager:V",
	"kube-scheduler":          "registry.k8s.io/kube-scheduler:V",
	"kube-proxy":              "registry.k8s.io/kube-proxy:V",
	"konnectivity-server":     "registry.k8s.io/kas-network-proxy/proxy-server:" + konnectivityVersion,
	"konnectivity-agent":      "registry.k8s.io/kas-network-proxy/proxy-agent:" + konnectivityVersion,
	"coredns":                 "registry.k8s.io/coredns/coredns:" + corednsVersion,
	"flannel":                 "ghcr.io/flannel-io/flannel:" + flannelVersion,
	"flannel-cni":             "ghcr.io/flannel-io/flannel-cni-plugin:" + flannelCNIVersion,
}

// Image returns the image of a program. With an imageRepository it is that registry's, by
// the last part of its name: registry.example.org/etcd:3.7.0-0.
func (p *Plane) Image(program string) (string, error) {
	ref, ok := images[program]
	if !ok {
		return "", fmt.Errorf("no image %q", program)
	}
	ref = strings.ReplaceAll(ref, ":V", ":"+p.Version)
	if strings.HasSuffix(ref, ":ETCD") {
		ref = strings.TrimSuffix(ref, "ETCD") + NewerEtcd(etcdFor(p.Version), p.Etcd)
	}
	if r := p.Spec.ImageRepository; r != "" {
		return r + "/" + path.Base(ref), nil
	}
	return ref, nil
}

// etcdFor returns the version of etcd for a version of Kubernetes. Older ones keep the
// etcd that was current with them.
func etcdFor(kubernetes string) string {
	var minor int
	if _, err := fmt.Sscanf(kubernetes, "v1.%d.", &minor); err != nil {
		minor = 1 << 10
	}
	switch {
	case minor < 34:
		return "3.5.24-0"
	case minor < 37:
		return "3.6.6-0"
	}
	return "3.7.0-0"
}

// NewerEtcd returns the newer of two versions of etcd's image, such as 3.7.0-0. What is no such
// version is older than all.
func NewerEtcd(a, b string) string {
	if slices.Compare(etcdNumbers(b), etcdNumbers(a)) > 0 {
		return b
	}
	return a
}

// etcdNumbers returns the numbers of a version of etcd's image.
func etcdNumbers(version string) []int {
	n := make([]int, 4)
	if _, err := fmt.Sscanf(version, "%d.%d.%d-%d", &n[0], &n[1], &n[2], &n[3]); err != nil {
		return nil
	}
	return n
}
