package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"drover/e2e/bench/kit"
)

// programs are the DHCP servers and the load generator.
type programs struct {
	kit.Debian
	kea, dnsmasq string // versions
	drover, from string // the program, and where it is from
}

func fetchPrograms(ctx context.Context, log io.Writer) (*programs, error) {
	d, err := kit.Unpack(ctx, log, "bench-dhcp", []string{"kea-dhcp4-server", "kea-dhcp6-server", "kea-admin", "kea-common", "dnsmasq-base"},
		"kea-dhcp4", "kea-dhcp6", "kea-lfc", "perfdhcp", "dnsmasq")
	if err != nil {
		return nil, err
	}
	p := &programs{Debian: d}
	var derr error
	p.kea, err = d.FirstLine(ctx, "kea-dhcp4", "-v")
	p.dnsmasq, derr = d.FirstLine(ctx, "dnsmasq", "--version")
	if f := strings.Fields(p.dnsmasq); len(f) > 2 { // Dnsmasq version 2.90  Copyright …
		p.dnsmasq = f[2]
	}
	return p, errors.Join(err, derr)
}
