package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"drover/e2e/bench/kit"
)

// programs are the peers.
type programs struct {
	kit.Debian
	nginxVersion, dnsmasqVersion string
}

func fetchPrograms(ctx context.Context, log io.Writer) (*programs, error) {
	d, err := kit.Unpack(ctx, log, "bench-boot", []string{"nginx", "dnsmasq-base"}, "nginx", "dnsmasq")
	if err != nil {
		return nil, err
	}
	nginx, err := d.FirstLine(ctx, "nginx", "-v") // nginx version: nginx/1.22.1
	dnsmasq, derr := d.FirstLine(ctx, "dnsmasq", "--version")
	p := &programs{Debian: d, dnsmasqVersion: dnsmasq}
	_, p.nginxVersion, _ = strings.Cut(nginx, "/")
	if f := strings.Fields(dnsmasq); len(f) > 2 { // Dnsmasq version 2.90  Copyright …
		p.dnsmasqVersion = f[2]
	}
	return p, errors.Join(err, derr)
}
