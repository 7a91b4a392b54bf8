package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"drover/e2e/buildcache"
	"drover/e2e/lab/site"
	"drover/imagebuild"
)

// InitrdSizes are in bytes.
type InitrdSizes struct {
	Kernel     string `json:"kernel"` // version
	Drover     int64  `json:"drover"`
	Mkinitrd   int64  `json:"mkinitramfs"` // with its default configuration
	LiveBoot   int64  `json:"liveBoot"`    // with live-boot, for the hand-built stack
	initramfs  string // directory of the last two
	imageFiles string // directory of the image
}

// initrds makes the initramfs of mkinitramfs for the kernel of the node image, unless an
// earlier run has made it.
func (b *bench) initrds(ctx context.Context) (s InitrdSizes, err error) {
	built, err := b.rack(ctx)
	if err != nil {
		return s, err
	}
	image, err := imagebuild.Open(built.Images).Lookup(site.Image)
	if err != nil {
		return s, err
	}
	s.Kernel, s.Drover, s.imageFiles = image.KernelVersion, image.Files[imagebuild.InitrdFile].Size, image.Path
	squashfs := image.Files[imagebuild.SquashfsFile].SHA256
	s.initramfs, err = buildcache.Initramfs(ctx, b.log, filepath.Join(image.Path, imagebuild.SquashfsFile), squashfs, image.KernelVersion)
	if err != nil {
		return s, err
	}
	for file, to := range map[string]*int64{buildcache.DefaultInitramfs: &s.Mkinitrd, buildcache.LiveInitramfs: &s.LiveBoot} {
		info, err := os.Stat(filepath.Join(s.initramfs, file))
		if err != nil {
			return s, err
		}
		*to = info.Size()
	}
	return s, nil
}

func (b *bench) measureInitrd(ctx context.Context, r *Report) error {
	s, err := b.initrds(ctx)
	if err != nil {
		return err
	}
	b.say("kernel %s: drover's initrd %s, mkinitramfs' %s, with live-boot %s", s.Kernel, megabytes(s.Drover), megabytes(s.Mkinitrd), megabytes(s.LiveBoot))
	r.Initrd = &s
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
