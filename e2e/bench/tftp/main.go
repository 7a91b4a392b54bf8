package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"regexp"
	"time"

	"drover/e2e/bench/kit"
)

func main() { kit.Main("bench-tftp", run) }

// options are the flags.
type options struct {
	length time.Duration
	rounds int
	rows   *regexp.Regexp
	least  float64 // ratio that every row must have, or tie with
	pin    bool    // measure the library as well
	json   string  // file for the results
	serve  string  // a directory: this process is the server to be measured
	addr   string
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench-tftp", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.DurationVar(&o.length, "time", 250*time.Millisecond, "how long each server is measured, for each row and round")
	f.IntVar(&o.rounds, "rounds", 7, "how often; medians are shown. A row that drover does not win is measured twice as often again")
	rows := f.String("rows", "", "measure only the rows whose name matches this `regexp`, as \"^50 .* window 8\"")
	f.Float64Var(&o.least, "least", 0.9, "fail when a row is below this `ratio` to the best peer, and no tie; 0: never")
	f.BoolVar(&o.pin, "pin", true, "measure the library pin/tftp as well, for comparison")
	f.StringVar(&o.json, "json", "", "`file` for the rows and the outcome, as JSON")
	f.StringVar(&o.serve, "serve", "", "serve this `directory`: what the benchmark starts itself for")
	f.StringVar(&o.addr, "addr", "", "the `address` to serve on")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	if o.length < 10*time.Millisecond || o.length > time.Minute || o.rounds < 1 {
		return o, fmt.Errorf("-time %v, -rounds %d (want 10ms to 1m, and 1 or more)", o.length, o.rounds)
	}
	o.rows, err = regexp.Compile(*rows)
	return o, err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	if o.serve != "" {
		return serveDrover(ctx, o.serve, o.addr)
	}
	if err := kit.Able(); err != nil {
		return err
	}
	b, err := newBench(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer b.close()
	return b.run(ctx, stdout, stderr)
}
