package buildcache

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// Flannel builds flanneld, and returns the folder that has it.
func Flannel(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "flannel", flannel)
}

// CoreDNS builds CoreDNS, and returns the folder that has it.
func CoreDNS(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "CoreDNS", coredns)
}

// Tools returns a tar of Debian's nft and iptables, with their libraries.
func Tools(ctx context.Context, log io.Writer) (file string, err error) {
	log = share(log)
	dir, err := tools(log).path(ctx, log)
	if err != nil {
		return "", fmt.Errorf("tools: %w", err)
	}
	return filepath.Join(dir, toolsTar), nil
}
