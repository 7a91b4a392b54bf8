package admin

import (
	"context"
	"fmt"
	"io"
	"os/exec"

	"drover/e2e/buildcache"
)

// Programs has the paths of the programs that an admin cluster consists of.
type Programs struct {
	Kubernetes string // folder, see [buildcache.Kubernetes]
	Containerd string // folder, see [buildcache.Containerd]
	Proxy      string // folder, see [buildcache.Proxy]
	Pause      string // archive, see [buildcache.PauseImage]
	Runc       string
}

// Build builds the programs, as far as they are not in the cache. Cold, that takes a
// quarter of an hour on two cores.
func Build(ctx context.Context, log io.Writer) (p *Programs, err error) {
	p = new(Programs)
	if p.Runc, err = exec.LookPath("runc"); err != nil {
		return nil, fmt.Errorf("package runc is missing: %w", err)
	}
	for _, part := range []struct {
		path  *string
		build func(context.Context, io.Writer) (string, error)
	}{
		{&p.Kubernetes, buildcache.Kubernetes},
		{&p.Containerd, buildcache.Containerd},
		{&p.Proxy, buildcache.Proxy},
		{&p.Pause, buildcache.PauseImage},
	} {
		if *part.path, err = part.build(ctx, log); err != nil {
			return nil, err
		}
	}
	return p, nil
}
