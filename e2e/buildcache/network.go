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

	"drover/e2e/oci"
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
	log = share(log)
	p, err := network(ctx, log)
	if err != nil {
		return "", fmt.Errorf("network: %w", err)
	}
	return p.path(ctx, log)
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
	sources, err := hashFiles(root, "e2e/image/probe", "e2e/oci/layout.go", "e2e/buildcache/network.go", "e2e/buildcache/tools.go", "e2e/buildcache/archive.go")
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
			err = networkImages(filepath.Join(dir, "images"), filepath.Join(from[3], toolsTar), map[string][]string{
				"kube-proxy:" + version["k8s.io/kubernetes"]: {filepath.Join(from[0], "kube-proxy")},
				"flannel:" + NetworkTag:                      {filepath.Join(from[1], "flanneld"), filepath.Join(from[2], "flannel")},
				"probe:" + NetworkTag:                        {probe},
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

// networkImages writes an image for each name, with these programs in /usr/local/bin
// above a layer of Debian's tools, which the images share.
func networkImages(dir, toolsTar string, programs map[string][]string) error {
	l := oci.Layout{Dir: dir}
	tools, err := l.Layer(func(t *tar.Writer) error { return toolsLayer(t, toolsTar) })
	if err != nil {
		return fmt.Errorf("%s: %w", toolsTar, err)
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		files := programs[name]
		own, err := l.Layer(func(t *tar.Writer) error {
			for _, file := range files {
				if err := addProgram(t, file); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("image %q: %w", name, err)
		}
		img := oci.Image{Name: name, Layers: []oci.Blob{tools, own}, Entrypoint: []string{binDir + "/" + filepath.Base(files[0])}}
		if err := l.Add(img); err != nil {
			return err
		}
	}
	return l.Close()
}

const binDir = "/usr/local/bin" // kubeadm starts kube-proxy there

func addProgram(t *tar.Writer, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return writeFile(t, path.Join(binDir, filepath.Base(file))[1:], 0o755, content)
}

// Proxy returns a folder with kube-scheduler and kube-proxy, for a node that is no machine
// of the lab. It takes half a minute after Kubernetes.
func Proxy(ctx context.Context, log io.Writer) (dir string, err error) {
	log = share(log)
	p, err := proxy(ctx, log)
	if err != nil {
		return "", fmt.Errorf("proxy: %w", err)
	}
	return p.path(ctx, log)
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
