package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"drover/e2e/bench/kit"
	"drover/e2e/bench/stats"
)

func main() { kit.Main("bench-boot", run) }

// options are the flags.
type options struct {
	quick  bool
	only   []string // parts
	rounds int      // of the part http; the others have their own numbers
	conns  []int    // of the part http: connections at a time
	boots  int      // of each stack
	cpus   int      // number of processors of the machine that boots
	cpu    string   // their model
	memory int      // MB of its RAM
	json   string   // file for the results
	drover string   // program to measure instead of one that is built
	keep   bool
}

// The parts of a run.
const (
	partHTTP   = "http"
	partTFTP   = "tftp"
	partInitrd = "initrd"
	partBoot   = "boot"
)

func allParts() []string { return []string{partHTTP, partTFTP, partInitrd, partBoot} }

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench-boot", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.quick, "quick", false, "a first impression: few rounds, one boot of each kind")
	only := f.String("only", "", "`parts` to measure ("+strings.Join(allParts(), ", ")+"), with commas between; what is left out is not judged")
	f.IntVar(&o.rounds, "rounds", 9, "how often HTTP is measured; medians are shown")
	conns := f.String("connections", "1,8,64", "how `many` there are at a time when HTTP is measured")
	f.IntVar(&o.boots, "boots", 3, "how often a machine boots from each; medians are shown")
	f.IntVar(&o.cpus, "cpus", 2, "processors of the machine that boots")
	f.StringVar(&o.cpu, "cpu", "max,la57=off", "their `kind`, by QEMU's name; empty: a plain x86-64 of 2006")
	f.IntVar(&o.memory, "memory", 2048, "`MB` of its RAM")
	f.StringVar(&o.json, "json", "", "`file` for all figures and the outcome, as JSON")
	f.StringVar(&o.drover, "drover", "", "the `program` to measure; default: built from this source")
	f.BoolVar(&o.keep, "keep", false, "leave configs, logs and consoles")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	if o.only, err = chooseParts(*only); err != nil {
		return o, err
	}
	if o.conns, err = parseConnections(*conns); err != nil {
		return o, err
	}
	if o.quick {
		o.rounds, o.boots = min(o.rounds, 3), 1
	}
	if o.rounds < 1 || o.boots < 1 || o.cpus < 1 || o.memory < 512 {
		return o, fmt.Errorf("-rounds %d, -boots %d, -cpus %d, -memory %d (want 1 or more, and 512 MB)", o.rounds, o.boots, o.cpus, o.memory)
	}
	return o, nil
}

func parseConnections(text string) (conns []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > mostConns || slices.Contains(conns, n) {
			return nil, fmt.Errorf("-connections %q: %q (want different numbers from 1 to %d)", text, word, mostConns)
		}
		conns = append(conns, n)
	}
	return conns, nil
}

// chooseParts returns the parts of these names, or all without names.
func chooseParts(names string) (chosen []string, err error) {
	if names == "" {
		return allParts(), nil
	}
	for name := range strings.SplitSeq(names, ",") {
		switch {
		case !slices.Contains(allParts(), name):
			return nil, fmt.Errorf("-only: no part %q (want %s)", name, strings.Join(allParts(), ", "))
		case slices.Contains(chosen, name):
			return nil, fmt.Errorf("-only: %q twice", name)
		}
		chosen = append(chosen, name)
	}
	return chosen, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	if err := kit.Able(); err != nil {
		return err
	}
	b, err := openBench(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	report := newReport(b)
	for _, part := range o.only {
		b.say("== %s; load average of the host %s", part, stats.LoadAverage())
		measure := map[string]func(context.Context, *Report) error{
			partHTTP: b.measureHTTP, partTFTP: b.measureTFTP, partInitrd: b.measureInitrd, partBoot: b.measureBoot,
		}[part]
		if err := measure(ctx, report); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	report.end()
	if err := report.print(stdout); err != nil {
		return err
	}
	if err := kit.Save(o.json, report); err != nil {
		return err
	}
	return report.failure()
}
