package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"drover/node/fetch"
	"drover/node/nodeconfig"
	"drover/node/rootfs"
	"drover/node/state"
)

// fetchImage fetches the root image into RAM.
func (b *boot) fetchImage(ctx context.Context) error {
	if err := rootfs.MountImageDir(); err != nil {
		return err
	}
	queue := &queueing{boot: b}
	f := &fetch.Fetcher{
		Client: b.srv.Client,
		URL:    b.srv.URL(b.args.Root),
		Also:   b.srv.URLs(b.args.Root),
		TFTP:   net.JoinHostPort(b.args.URL.Hostname(), "69"),
		Name:   strings.TrimPrefix(b.args.Root, "/"),
		Digest: b.args.Digest,
		Retry:  b.retry(),
		Fit:    rootfs.FitsRAM,
		Queued: queue.moved,
		Progress: func(done, total int64, rate float64) {
			b.con.Printf("image", "%d of %d MB (%d%%), %.1f MB/s", done>>20, total>>20, 100*done/max(total, 1), rate/(1<<20))
		},
	}
	start := time.Now()
	if err := f.FindChunks(ctx); err != nil {
		b.con.Printf("image", "without digests of its chunks: %v", err)
	}
	size, err := f.Fetch(ctx, imageFile)
	if err != nil {
		return fmt.Errorf("%s: %w", b.args.Root, err)
	}
	took := time.Since(start) - queue.waited
	megabytes := float64(size) / (1 << 20)
	b.detail = fmt.Sprintf("%.1f MB in %.1f s, %.1f MB/s, sha256 is right", megabytes, took.Seconds(), megabytes/max(took.Seconds(), 1e-3))
	if f.NoHTTP != nil {
		b.detail += fmt.Sprintf(", by TFTP because HTTP failed: %v", f.NoHTTP)
	}
	if queue.waited > 0 {
		b.detail += fmt.Sprintf(", after %.0f s in the queue", queue.waited.Seconds())
	}
	return nil
}

// openRoot mounts the image and makes it the root directory.
func (b *boot) openRoot(context.Context) error {
	if err := state.CopySelf(state.Dir); err != nil {
		return err
	}
	if err := rootfs.MountRoot(imageFile); err != nil {
		return err
	}
	if err := rootfs.EnterRoot(); err != nil {
		return err
	}
	restore, err := nodeconfig.LendResolvConf("/", b.net.Lease.ResolvConf())
	b.restore = restore
	return err
}
