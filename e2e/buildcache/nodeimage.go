package buildcache

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
)

const (
	dockerfile = "Dockerfile.image"
	nodeFiles  = "nodeimage"
	// nodeRecipe is the version of the procedure that builds the image; it is part of
	// the key.
	nodeRecipe = "1"
)

// ingredients are the parts that go into the node image.
type ingredients struct {
	base, kubernetes, containerd, containers part
}

func (in ingredients) all() []part {
	return []part{in.base, in.kubernetes, in.containerd, in.containers}
}

// NodeImage builds the lab's root image of a node, Debian 12, from Dockerfile.image with
// K8S_SOURCE=local. It returns an OCI layout with this one image. The first time, with all
// parts, takes 15 minutes on two cores; after a change of its files it takes about 20
// seconds.
func NodeImage(ctx context.Context, log io.Writer) (ociDir string, err error) {
	return debian12.nodeImage(ctx, log)
}

// NodeImage13 is [NodeImage] with Debian 13.
func NodeImage13(ctx context.Context, log io.Writer) (ociDir string, err error) {
	return debian13.nodeImage(ctx, log)
}

func (d debian) nodeImage(ctx context.Context, log io.Writer) (ociDir string, err error) {
	return pathOf(ctx, log, "image", d.node)
}

// node returns the part with the image.
func (d debian) node(ctx context.Context, log io.Writer) (part, error) {
	root, err := SourceRoot()
	if err != nil {
		return part{}, err
	}
	in, err := d.gather(ctx, log)
	if err != nil {
		return part{}, err
	}
	files, err := hashFiles(root, dockerfile, nodeFiles+"/root", nodeFiles+"/lab")
	if err != nil {
		return part{}, err
	}
	inputs := []string{nodeRecipe, files}
	for _, p := range in.all() {
		inputs = append(inputs, p.key)
	}
	return part{kind: "image" + d.suffix, key: hashOf(inputs...), make: func(ctx context.Context, dir string) error {
		return in.bake(ctx, log, root, dir, "buildah"+d.suffix)
	}}, nil
}

func (d debian) gather(ctx context.Context, log io.Writer) (in ingredients, err error) {
	in.base = d.base(log)
	if in.kubernetes, err = kubernetes(ctx, log); err != nil {
		return in, err
	}
	if in.containerd, err = containerd(ctx, log); err != nil {
		return in, err
	}
	in.containers, err = containers(ctx, log)
	return in, err
}

// bake makes the missing parts and builds the image into dir, with a store of buildah's
// below the cache. It downloads the base while the others are compiled.
func (in ingredients) bake(ctx context.Context, log io.Writer, root, dir, store string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var baseDir string
	var baseErr error
	var download sync.WaitGroup
	download.Go(func() {
		if baseDir, baseErr = in.base.path(ctx, log); baseErr != nil {
			cancel()
		}
	})
	bin, err := os.MkdirTemp(filepath.Dir(dir), ".image-")
	if err == nil {
		defer os.RemoveAll(bin)
		err = in.stage(ctx, log, bin)
	}
	if err != nil {
		cancel()
	}
	download.Wait()
	if baseErr != nil && !errors.Is(baseErr, context.Canceled) {
		return baseErr
	}
	if err := errors.Join(err, baseErr); err != nil {
		return err
	}
	return timed(log, "image", func() error {
		return bud(ctx, log, budInput{
			root: root, base: filepath.Join(baseDir, baseTar), baseKey: in.base.key, bin: bin, out: dir, store: store,
		})
	})
}

// stage makes the build context "k8sbin" of Dockerfile.image.
func (in ingredients) stage(ctx context.Context, log io.Writer, bin string) error {
	k8s, err := in.kubernetes.path(ctx, log)
	if err != nil {
		return err
	}
	ctrd, err := in.containerd.path(ctx, log)
	if err != nil {
		return err
	}
	archives, err := in.containers.path(ctx, log)
	if err != nil {
		return err
	}
	if err := os.Chmod(bin, 0o755); err != nil {
		return err
	}
	for _, sub := range []string{"cni", "images"} {
		if err := os.Mkdir(filepath.Join(bin, sub), 0o755); err != nil {
			return err
		}
	}
	links := map[string]string{
		"kubelet": k8s, "kubeadm": k8s, "kubectl": k8s,
		"containerd": ctrd, "containerd-shim-runc-v2": ctrd, "ctr": ctrd,
		"cni/bridge": ctrd, "cni/host-local": ctrd, "cni/loopback": ctrd, "cni/portmap": ctrd,
	}
	for name, from := range links {
		if err := os.Link(filepath.Join(from, name), filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return os.Link(filepath.Join(archives, bothArchive), filepath.Join(bin, "images", bothArchive))
}
