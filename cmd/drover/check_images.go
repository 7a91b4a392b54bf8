package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"drover/cmd/drover/cli"
	"drover/imagebuild"
	"drover/pools"
	"drover/pools/resolve"
	"drover/server/catalog"
	"drover/web/client"
)

// warnImages warns about pools whose image or channel is not there: by a directory of images, and by
// the channels of the running server, which ask returns. A host without that directory is not the
// server: there is nothing to compare with.
func (k *checked) warnImages(farm *resolve.Farm, dir string, ask func() (channels, error)) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	images := imagebuild.Open(dir)
	var answered channels
	var silent error
	for _, p := range farm.Config.Pools {
		if p.Image == "" { // an ignored pool
			continue
		}
		name, channel, _ := pools.SplitImage(p.Image)
		_, err := images.Lookup(p.Image)
		if err == nil {
			continue
		}
		if answered == nil && silent == nil {
			answered, silent = ask()
		}
		if _, err = (&catalog.Catalog{Dir: images, Channels: answered}).Lookup(p.Image); err == nil {
			continue
		}
		all, _ := images.Generations(name)
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			k.warn("pool %q: %v", p.Name, err)
		case len(all) > 0 && channel != "" && silent != nil:
			k.warn("pool %q: the channel of image %q is not checked: only the running server has the channels, and it does not answer", p.Name, p.Image)
		case len(all) > 0 && channel != "":
			k.warn("pool %q: %v", p.Name, err)
		default:
			k.warn("pool %q: image %q is not in %s: its machines do not boot until it is there: drover image build --name %s makes it, drover image list shows those that there are",
				p.Name, p.Image, dir, name)
		}
	}
}

// channels are those of a server, by image. They are a [catalog.Channels] that only is read.
type channels map[string]pools.ImageChannels

// Of implements [catalog.Channels].
func (c channels) Of(image string) pools.ImageChannels { return c[image] }

// All implements [catalog.Channels].
func (c channels) All() map[string]pools.ImageChannels { return c }

// Change implements [catalog.Channels].
func (channels) Change(string, func(pools.ImageChannels) (pools.ImageChannels, error)) error {
	return errors.ErrUnsupported
}

// askChannels asks a server for its channels.
func askChannels(ctx context.Context, c *cli.Client) (channels, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	list, err := cli.Get(ctx, c, client.Channels)
	all := channels{}
	for _, ch := range list {
		if all[ch.Image].Channels == nil {
			all[ch.Image] = pools.ImageChannels{Channels: map[string][]pools.Promotion{}}
		}
		all[ch.Image].Channels[ch.Name] = ch.History
	}
	return all, err
}
