package buildcache

import (
	"context"
	"io"
	"path/filepath"
)

// beforeModule pins the minor version of Kubernetes before [kubernetesModule]'s.
const beforeModule = "e2e/kubernetes/before"

// KubernetesBefore builds the programs of a control plane of the minor version of Kubernetes
// before that of [Kubernetes]: etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler. It returns their folder, and the version. The first time takes eight minutes
// on two cores.
func KubernetesBefore(ctx context.Context, log io.Writer) (dir, version string, err error) {
	root, err := SourceRoot()
	if err != nil {
		return "", "", err
	}
	versions, err := required(ctx, filepath.Join(root, beforeModule))
	if err != nil {
		return "", "", err
	}
	dir, err = pathOf(ctx, log, "the Kubernetes before", func(ctx context.Context, log io.Writer) (part, error) {
		b := goBuild{module: beforeModule, stamp: kubernetesStamp, programs: []program{{"etcd", "go.etcd.io/etcd/server/v3"}}}
		for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			b.programs = append(b.programs, program{name, "k8s.io/kubernetes/cmd/" + name})
		}
		return b.part(ctx, "before", log)
	})
	return dir, versions["k8s.io/kubernetes"], err
}
