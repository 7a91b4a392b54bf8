package buildcache

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"drover/deploy/oci"
)

// NetworkTag is the tag of the lab's own images in [Network]. The tag of kube-proxy is the
// version of Kubernetes, as kubeadm expects.
const NetworkTag = "lab"

// Network builds the parts of a cluster's pod network, and a scheduler for its pods. It
// returns a folder:
//
//	kube-scheduler   for the control plane
//	images/          an OCI layout: kube-proxy:v1.X.Y, flannel:lab, probe:lab
//
// kube-proxy and flannel are built from their sources. Their programs iptables, nft and ip
// are from Debian. The first time takes two minutes on two cores, after Kubernetes.
func Network(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "network", network)
}

func network(ctx context.Context, log io.Writer) (part, error) {
	root, err := SourceRoot()
	if err != nil {
		return part{}, err
	}
	version, err := required(ctx, filepath.Join(root, kubernetesModule))
	if err != nil {
		return part{}, err
	}
	sources, err := hashFiles(root, "e2e/image/probe", "deploy/oci/layout.go", "e2e/buildcache/network.go", "e2e/buildcache/tools.go", "e2e/buildcache/archive.go")
	if err != nil {
		return part{}, err
	}
	proxy, err := proxy(ctx, log)
	if err != nil {
		return part{}, err
	}
	flannel, err := flannel(ctx, log)
	if err != nil {
		return part{}, err
	}
	plugin, err := flannelCNI(ctx, log)
	if err != nil {
		return part{}, err
	}
	tools := tools(log)
	return part{
		kind: "network",
		key:  hashOf(sources, proxy.key, flannel.key, plugin.key, tools.key),
		make: func(ctx context.Context, dir string) error {
			from, err := paths(ctx, log, proxy, flannel, plugin, tools)
			if err != nil {
				return err
			}
			if err := os.Link(filepath.Join(from[0], "kube-scheduler"), filepath.Join(dir, "kube-scheduler")); err != nil {
				return err
			}
			probe := filepath.Join(dir, "probe")
			if err := compile(ctx, log, root, "./e2e/image/probe", probe); err != nil {
				return err
			}
			err = networkImages(filepath.Join(dir, "images"), filepath.Join(from[3], toolsTar), map[string][]installed{
				"kube-proxy:" + version["k8s.io/kubernetes"]: {inBin(from[0], "kube-proxy")},
				"flannel:" + NetworkTag:                      {inBin(from[1], "flanneld"), inBin(from[2], "flannel")},
				"probe:" + NetworkTag:                        {inBin(dir, "probe")},
			})
			return errors.Join(err, os.Remove(probe))
		},
	}, nil
}

// paths makes parts one by one, since each uses all processors, and returns their paths.
func paths(ctx context.Context, log io.Writer, parts ...part) (dirs []string, err error) {
	for _, p := range parts {
		dir, err := p.path(ctx, log)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// installed is a program in an image.
type installed struct {
	file string // of this host
	path string // in the image
}

// inBin installs a program in /usr/local/bin.
func inBin(dir, name string) installed {
	return installed{filepath.Join(dir, name), path.Join(binDir, name)}
}

// networkImages writes an image for each name, with these programs above a layer of Debian's
// tools, which the images share. The first program is the entrypoint.
func networkImages(dir, toolsTar string, programs map[string][]installed) error {
	l := oci.Layout{Dir: dir}
	tools, err := l.Layer(func(t *tar.Writer) error { return toolsLayer(t, toolsTar) })
	if err != nil {
		return fmt.Errorf("%s: %w", toolsTar, err)
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if err := addPrograms(&l, name, []oci.Blob{tools}, programs[name]...); err != nil {
			return err
		}
	}
	return l.Close()
}

// addPrograms adds an image with these programs above other layers. The first program is
// the entrypoint.
func addPrograms(l *oci.Layout, name string, below []oci.Blob, programs ...installed) error {
	own, err := l.Layer(func(t *tar.Writer) error {
		for _, p := range programs {
			if err := addLarge(t, p.file, p.path); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("image %q: %w", name, err)
	}
	return l.Add(oci.Image{Name: name, Layers: append(slices.Clip(below), own), Entrypoint: []string{programs[0].path}})
}

const binDir = "/usr/local/bin" // kubeadm starts kube-proxy there

// Proxy returns a folder with kube-scheduler and kube-proxy, for a node that is no machine
// of the lab. It takes half a minute after Kubernetes.
func Proxy(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "proxy", proxy)
}

// proxy returns the part with kube-scheduler and kube-proxy, which a cluster needs to
// schedule pods and for its Services. They are a part of their own, beside [Kubernetes]:
// most tests need only that, and a change of this part does not rebuild the node image.
func proxy(ctx context.Context, log io.Writer) (part, error) {
	b := goBuild{module: kubernetesModule, stamp: kubernetesStamp}
	for _, name := range []string{"kube-proxy", "kube-scheduler"} {
		b.programs = append(b.programs, program{name, "k8s.io/kubernetes/cmd/" + name})
	}
	return b.part(ctx, "proxy", log)
}
