package buildcache

import (
	"archive/tar"
	"context"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"drover/deploy/oci"
)

// WebhookName is the image of [WebhookImage].
const WebhookName = "lab.example/webhook:1"

// WebhookImage returns an OCI layout with the image [WebhookName], see e2e/image/webhook.
func WebhookImage(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "webhook", webhook)
}

func webhook(ctx context.Context, log io.Writer) (part, error) {
	root, err := SourceRoot()
	if err != nil {
		return part{}, err
	}
	sources, err := hashFiles(root, "e2e/image/webhook", "deploy/oci/layout.go", "e2e/buildcache/addons.go")
	if err != nil {
		return part{}, err
	}
	toolchain, err := goOutput(ctx, root, "env", "GOVERSION", "GOARCH")
	if err != nil {
		return part{}, err
	}
	return part{kind: "webhook", key: hashOf(sources, toolchain), make: func(ctx context.Context, dir string) error {
		program := filepath.Join(dir, "webhook")
		if err := compile(ctx, log, root, "./e2e/image/webhook", program); err != nil {
			return err
		}
		l := oci.Layout{Dir: dir}
		if err := addPrograms(&l, WebhookName, nil, installed{program, "/webhook"}); err != nil {
			return err
		}
		return l.Close()
	}}, nil
}

// coredns returns the part with CoreDNS, which has the plugins of e2e/coredns/main.go.
func coredns(ctx context.Context, log io.Writer) (part, error) {
	root, err := SourceRoot()
	if err != nil {
		return part{}, err
	}
	main, err := hashFiles(root, "e2e/coredns/main.go")
	if err != nil {
		return part{}, err
	}
	b := goBuild{
		module: "e2e/coredns", programs: []program{{"coredns", "."}}, recipe: main,
		stamp: func(map[string]string) ([]string, error) { return nil, nil },
	}
	return b.part(ctx, "coredns", log)
}

// AddOnImages returns an OCI layout with the container images of the add-ons of a hosted
// tenant, by the names that their projects give them: registry.k8s.io/kube-proxy and so on.
// The first time takes half a minute after [Network].
func AddOnImages(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "add-on images", addOnImages)
}

func addOnImages(ctx context.Context, log io.Writer) (part, error) {
	root, err := SourceRoot()
	if err != nil {
		return part{}, err
	}
	key, err := hashFiles(root, "deploy/oci/layout.go", "e2e/buildcache/addons.go", "e2e/buildcache/tools.go")
	if err != nil {
		return part{}, err
	}
	parts := []part{tools(log)}
	for _, make := range []func(context.Context, io.Writer) (part, error){proxy, flannel, flannelCNI, coredns} {
		p, err := make(ctx, log)
		if err != nil {
			return part{}, err
		}
		parts = append(parts, p)
	}
	keys := []string{key}
	for _, p := range parts {
		keys = append(keys, p.key)
	}
	names, err := addOnNames(ctx, root)
	if err != nil {
		return part{}, err
	}
	return part{kind: "addons", key: hashOf(keys...), make: func(ctx context.Context, dir string) error {
		from, err := paths(ctx, log, parts...)
		if err != nil {
			return err
		}
		return writeAddOns(dir, from, names)
	}}, nil
}

// addOnNames returns the names of images by the names of their programs. The image of
// flannel's CNI plugin has a version of its own, for which there is no Go module.
func addOnNames(ctx context.Context, root string) (map[string]string, error) {
	names := map[string]string{"flannel": "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel1"}
	for program, from := range map[string]struct{ folder, module, image string }{
		"kube-proxy": {kubernetesModule, "k8s.io/kubernetes", "registry.k8s.io/kube-proxy"},
		"flanneld":   {"e2e/flannel", "github.com/flannel-io/flannel", "ghcr.io/flannel-io/flannel"},
		"coredns":    {"e2e/coredns", "github.com/coredns/coredns", "registry.k8s.io/coredns/coredns"},
	} {
		version, err := required(ctx, filepath.Join(root, from.folder))
		if err != nil {
			return nil, err
		}
		names[program] = from.image + ":" + version[from.module]
	}
	return names, nil
}

// writeAddOns writes the images, from the folders of tools, kube-proxy, flannel, its CNI
// plugin and CoreDNS. The first three need tools; the plugin's image has cp in them.
func writeAddOns(dir string, from []string, names map[string]string) error {
	l := oci.Layout{Dir: dir}
	tools, err := l.Layer(func(t *tar.Writer) error { return toolsLayer(t, filepath.Join(from[0], toolsTar)) })
	if err != nil {
		return err
	}
	images := map[string]struct {
		below []oci.Blob
		installed
	}{
		"kube-proxy": {[]oci.Blob{tools}, inBin(from[1], "kube-proxy")},
		"flanneld":   {[]oci.Blob{tools}, installed{filepath.Join(from[2], "flanneld"), "/opt/bin/flanneld"}},
		"flannel":    {[]oci.Blob{tools}, installed{filepath.Join(from[3], "flannel"), "/flannel"}},
		"coredns":    {nil, installed{filepath.Join(from[4], "coredns"), "/coredns"}},
	}
	for _, program := range slices.Sorted(maps.Keys(images)) {
		img := images[program]
		if err := addPrograms(&l, names[program], img.below, img.installed); err != nil {
			return err
		}
	}
	return l.Close()
}
