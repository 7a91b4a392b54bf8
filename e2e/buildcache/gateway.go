package buildcache

import (
	"archive/tar"
	"context"
	"io"
	"path/filepath"

	"drover/deploy/oci"
)

// GatewayImage is [NodeImage] with flanneld and kube-proxy in /usr/local/bin: the root image
// of machines of a pool with role gateway. It returns an OCI layout with this one image.
func GatewayImage(ctx context.Context, log io.Writer) (ociDir string, err error) {
	return pathOf(ctx, log, "gateway", gateway)
}

func gateway(ctx context.Context, log io.Writer) (part, error) {
	node, err := debian12.node(ctx, log)
	if err != nil {
		return part{}, err
	}
	flannel, err := flannel(ctx, log)
	if err != nil {
		return part{}, err
	}
	proxy, err := proxy(ctx, log)
	if err != nil {
		return part{}, err
	}
	return part{kind: "gateway", key: hashOf(node.key, flannel.key, proxy.key), make: func(ctx context.Context, dir string) error {
		from, err := paths(ctx, log, node, flannel, proxy)
		if err != nil {
			return err
		}
		l := oci.Layout{Dir: dir}
		programs, err := l.Layer(func(t *tar.Writer) error {
			for i, name := range []string{"flanneld", "kube-proxy"} {
				if err := addLarge(t, filepath.Join(from[i+1], name), filepath.Join(binDir, name)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := l.AddAbove("gateway:"+NetworkTag, from[0], programs); err != nil {
			return err
		}
		return l.Close()
	}}, nil
}
