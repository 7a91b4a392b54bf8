package buildcache

import (
	"archive/tar"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"drover/deploy/oci"
)

// Konnectivity builds proxy-server and proxy-agent, through which a control plane that
// runs as a pod reaches its nodes, and returns their folder. The first time takes half a
// minute after Kubernetes.
func Konnectivity(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "konnectivity", konnectivity)
}

func konnectivity(ctx context.Context, log io.Writer) (part, error) {
	const module = "sigs.k8s.io/apiserver-network-proxy"
	b := goBuild{
		module:   "e2e/konnectivity",
		programs: []program{{"proxy-server", module + "/cmd/server"}, {"proxy-agent", module + "/cmd/agent"}},
		stamp:    func(map[string]string) ([]string, error) { return nil, nil },
	}
	return b.part(ctx, "konnectivity", log)
}

// ControlPlaneImages returns an OCI layout with the container images of a control plane, by
// the names that their projects give them: registry.k8s.io/etcd and so on.
func ControlPlaneImages(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "control plane images", controlPlaneImages)
}

func controlPlaneImages(ctx context.Context, log io.Writer) (part, error) {
	root, err := SourceRoot()
	if err != nil {
		return part{}, err
	}
	sources, err := hashFiles(root, "deploy/oci/layout.go", "e2e/buildcache/hosted.go")
	if err != nil {
		return part{}, err
	}
	version, err := required(ctx, filepath.Join(root, kubernetesModule))
	if err != nil {
		return part{}, err
	}
	konnect, err := required(ctx, filepath.Join(root, "e2e/konnectivity"))
	if err != nil {
		return part{}, err
	}
	var parts []part
	for _, make := range []func(context.Context, io.Writer) (part, error){kubernetes, proxy, konnectivity} {
		p, err := make(ctx, log)
		if err != nil {
			return part{}, err
		}
		parts = append(parts, p)
	}
	images := hostedImages(version["k8s.io/kubernetes"], version["go.etcd.io/etcd/server/v3"], konnect["sigs.k8s.io/apiserver-network-proxy"])
	return part{
		kind: "controlplane",
		key:  hashOf(sources, parts[0].key, parts[1].key, parts[2].key),
		make: func(ctx context.Context, dir string) error {
			from, err := paths(ctx, log, parts...)
			if err != nil {
				return err
			}
			return writeHosted(dir, from, images)
		},
	}, nil
}

// hostedImage is the place of a program in its image.
type hostedImage struct {
	part    int    // of kubernetes, proxy, konnectivity
	program string // its file
	path    string // in the image
}

// hostedImages returns the images of a control plane by name. kubeadm's images have their
// program on the PATH; those of konnectivity have it as their entrypoint.
func hostedImages(kubernetes, etcd, konnectivity string) map[string]hostedImage {
	const registry = "registry.k8s.io/"
	images := map[string]hostedImage{
		registry + "etcd:" + etcd[1:] + "-0":                        {0, "etcd", binDir + "/etcd"},
		registry + "kube-apiserver:" + kubernetes:                   {0, "kube-apiserver", binDir + "/kube-apiserver"},
		registry + "kube-controller-manager:" + kubernetes:          {0, "kube-controller-manager", binDir + "/kube-controller-manager"},
		registry + "kube-scheduler:" + kubernetes:                   {1, "kube-scheduler", binDir + "/kube-scheduler"},
		registry + "kas-network-proxy/proxy-server:" + konnectivity: {2, "proxy-server", "/proxy-server"},
		registry + "kas-network-proxy/proxy-agent:" + konnectivity:  {2, "proxy-agent", "/proxy-agent"},
	}
	return images
}

// writeHosted writes the images into a layout.
func writeHosted(dir string, parts []string, images map[string]hostedImage) error {
	l := oci.Layout{Dir: dir}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		img := images[name]
		if err := addPrograms(&l, name, nil, installed{filepath.Join(parts[img.part], img.program), img.path}); err != nil {
			return err
		}
	}
	return l.Close()
}

// addLarge writes a program without reading it into memory.
func addLarge(t *tar.Writer, file, path string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path[1:], Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	return oci.AddFile(t, file)
}
