package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"drover/e2e/bench/kit"
	"drover/e2e/bench/stats"
)

// row is one kind of load.
type row struct {
	clients, block, window int
	delay                  time.Duration
}

func (r row) String() string {
	return fmt.Sprintf("%d clients, blocks %d, window %d, delay %v", r.clients, r.block, r.window, r.delay)
}

// rows are the measured combinations. GRUB asks for blocks of 1024 bytes, UEFI for 1468
// with a window of 4.
func rows() (all []row) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		for _, clients := range []int{1, 50} {
			for _, block := range []int{1024, 1468} {
				for _, window := range []int{1, 4, 8} {
					all = append(all, row{clients, block, window, delay})
				}
			}
		}
	}
	return all
}

// bench is the wire, the servers and the file.
type bench struct {
	options
	dir     string
	content []byte
	wire    *wire
	servers []*server
}

const (
	fileName = "loader"
	fileSize = 64 << 20
)

func newBench(ctx context.Context, o options, log io.Writer) (b *bench, err error) {
	b = &bench{options: o, content: make([]byte, fileSize)}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	rand.Read(b.content)
	if b.dir, err = os.MkdirTemp("", "drover-bench-tftp-"); err != nil {
		return b, err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { // the peers drop root
		return b, err
	}
	if err := os.WriteFile(filepath.Join(b.dir, fileName), b.content, 0o644); err != nil {
		return b, err
	}
	p, err := fetchPrograms(ctx, log)
	if err != nil {
		return b, err
	}
	if b.wire, err = newWire(); err != nil {
		return b, err
	}
	b.servers, err = startServers(ctx, p, b.dir, b.wire, o.pin)
	return b, err
}

func (b *bench) close() {
	for _, s := range b.servers {
		s.stop()
	}
	if b.wire != nil {
		b.wire.close()
	}
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

// result has the figures of one server in one row.
type result struct {
	rates  []float64     // MB/s of each round
	cpu    time.Duration // of the server
	bytes  int64
	window int // that it accepted
	resent int
}

func (r *result) rate() float64 { return stats.Median(slices.Clone(r.rates)) }

// cpuPerGB returns the processor time in seconds.
func (r *result) cpuPerGB() float64 { return r.cpu.Seconds() / (float64(max(r.bytes, 1)) / 1e9) }

// run measures and prints row by row.
func (b *bench) run(ctx context.Context, out, log io.Writer) error {
	t := newTable(out, b.servers, b.least)
	for _, row := range rows() {
		if !b.rows.MatchString(row.String()) {
			continue
		}
		results := make([]result, len(b.servers))
		if err := b.measure(ctx, row, b.rounds, results); err != nil {
			return fmt.Errorf("%v: %w", row, err)
		}
		if t.compare(results).Median < 1 {
			// The result may be noise. All rounds count.
			if err := b.measure(ctx, row, 2*b.rounds, results); err != nil {
				return fmt.Errorf("%v: %w", row, err)
			}
		}
		t.row(row, results)
	}
	t.end()
	if err := kit.Save(b.json, t.rows); err != nil {
		return err
	}
	return stats.Failure(t.checks)
}

// measure adds rounds to the results of a row.
func (b *bench) measure(ctx context.Context, row row, rounds int, results []result) error {
	for round := range rounds {
		for i := range b.servers {
			// The order alternates, so that no server always follows the same one.
			n := (i + round) % len(b.servers)
			if err := b.once(ctx, row, b.servers[n], &results[n]); err != nil {
				return fmt.Errorf("%s: %w", b.servers[n].name, err)
			}
		}
	}
	for i := range results {
		if results[i].bytes == 0 {
			return fmt.Errorf("%s: nothing came", b.servers[i].name)
		}
	}
	return ctx.Err()
}

// once measures one server once.
func (b *bench) once(ctx context.Context, row row, s *server, r *result) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := s.on[1]
	if row.clients == 1 && row.delay == 0 {
		p = s.on[0] // client and server take turns anyway
	}
	before, err := p.cpu()
	if err != nil {
		return err
	}
	g := &generator{wire: b.wire, server: p.addr, row: row, content: b.content, length: b.length}
	if err := g.run(); err != nil {
		return fmt.Errorf("%w\n%s", err, p.output)
	}
	time.Sleep(20 * time.Millisecond) // the time of forked children is counted after their end
	after, err := p.cpu()
	if err != nil {
		return err
	}
	r.rates = append(r.rates, float64(g.bytes)/1e6/g.took.Seconds())
	r.bytes += g.total
	r.cpu += after - before
	r.window = cmp.Or(g.window, 1)
	r.resent += g.resent
	return nil
}
