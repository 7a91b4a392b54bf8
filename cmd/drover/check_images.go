package main

import (
	"errors"
	"io/fs"
	"os"

	"drover/imagebuild"
	"drover/pools"
	"drover/pools/resolve"
)

// warnImages warns about pools whose image is not in a directory of images, or is damaged there. A
// host without that directory is not the server: there is nothing to compare with.
func (k *checked) warnImages(farm *resolve.Farm, dir string) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	images := imagebuild.Open(dir)
	for _, p := range farm.Config.Pools {
		if p.Image == "" { // an ignored pool
			continue
		}
		switch _, err := images.Lookup(p.Image); {
		case errors.Is(err, fs.ErrNotExist):
			k.warn("pool %q: image %q is not in %s: its machines do not boot until it is there: drover image build --name %s makes it, drover image list shows those that there are",
				p.Name, p.Image, dir, pools.ImageName(p.Image))
		case err != nil:
			k.warn("pool %q: %v", p.Name, err)
		}
	}
}
