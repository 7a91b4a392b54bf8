package main

import (
	"context"
	"errors"
	"io"

	"drover/e2e/bench/kit"
)

// programs are the peers with their versions.
type programs struct {
	kit.Debian
	tftpd, atftpd, dnsmasq string
}

func fetchPrograms(ctx context.Context, log io.Writer) (*programs, error) {
	d, err := kit.Unpack(ctx, log, "bench-tftp", []string{"tftpd-hpa", "atftpd", "dnsmasq-base"}, "in.tftpd", "atftpd", "dnsmasq")
	if err != nil {
		return nil, err
	}
	p := &programs{Debian: d}
	var terr, aerr, derr error
	p.tftpd, terr = d.FirstLine(ctx, "in.tftpd", "-V")
	p.atftpd, aerr = d.FirstLine(ctx, "atftpd", "--version")
	p.dnsmasq, derr = d.FirstLine(ctx, "dnsmasq", "--version")
	return p, errors.Join(terr, aerr, derr)
}
