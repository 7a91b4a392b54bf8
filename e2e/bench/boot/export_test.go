package main

import (
	"context"
	"net/netip"
	"time"

	"drover/e2e/lab"
)

var (
	ParseOptions = parseOptions
	UsedRAM      = usedRAM
	ReadHead     = readHead
	Archive      = archive
)

// Print prints a report.
var Print = (*Report).print

// End evaluates the report.
var End = (*Report).end

// Failure is the error of a run.
var Failure = (*Report).failure

// Compare sets the ratios of a row.
var Compare = (*HTTPRow).compare

// StartRouter starts the IPv6 router of a rack and returns a function that stops it.
func StartRouter(ctx context.Context, rack *lab.Rack) (stop func() error, err error) {
	r, err := startRouter(ctx, rack)
	if err != nil {
		return nil, err
	}
	return r.stop, nil
}

// Puller is the HTTP client of the benchmark.
type Puller = puller

// NewPuller returns a puller with a short measured time.
func NewPuller(server netip.AddrPort, path string, size int64, from []netip.Addr) *Puller {
	nothing := func() {}
	return &puller{server: server, path: path, size: size, from: from,
		warm: 20 * time.Millisecond, length: 50 * time.Millisecond, begin: nothing, end: nothing}
}

// Watch sets the hooks for the begin and the end of the measured time.
func Watch(p *Puller, begin, end func()) { p.begin, p.end = begin, end }

// Patience extends the measured time.
func Patience(p *Puller, length time.Duration) { p.length = length }

// Pull runs it once.
func Pull(p *Puller) error {
	p.pulls = nil
	return p.run()
}

// Pulled returns the bytes of the measured time of the last run.
func Pulled(p *Puller) int64 { return p.bytes }
