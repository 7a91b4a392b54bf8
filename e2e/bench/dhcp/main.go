package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"drover/e2e/bench/kit"
)

func main() { kit.Main("bench-dhcp", run) }

// options are the flags.
type options struct {
	quick   bool
	six     bool      // DHCPv6
	rates   []float64 // exchanges per second that steps begin with
	length  time.Duration
	rounds  int
	chosen  []server
	json    string // file for the results
	drover  string // program to measure instead of one that is built
	keepDir bool
	pages   int // measure what so many open pages cost, and nothing else
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench-dhcp", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.quick, "quick", false, "a first impression: few and short steps")
	f.BoolVar(&o.six, "6", false, "DHCPv6: drover against Kea, by perfdhcp alone")
	rates := f.String("rates", "1000,2000,4000,8000,16000,32000", "`exchanges/s` of the steps, rising; between the last good and the first bad one it goes on by halves")
	seconds := f.Float64("seconds", 4, "how long a step takes")
	f.IntVar(&o.rounds, "rounds", 1, "how often everything is measured; medians are shown")
	only := f.String("only", "", "`servers` to measure (drover, kea, kea-mt, dnsmasq; with -6: drover-6, kea-6, kea-mt-6), with commas between; what is left out is not judged")
	f.StringVar(&o.json, "json", "", "`file` for all steps and the outcome, as JSON")
	f.StringVar(&o.drover, "drover", "", "the `program` to measure; default: built from this source")
	f.IntVar(&o.pages, "pages", 0, "measure only what so many open `pages` of drover cost its DHCP")
	f.BoolVar(&o.keepDir, "keep", false, "leave configs, logs and lease files of the last steps")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	if o.chosen, err = chooseServers(*only, o.six); err != nil {
		return o, err
	}
	o.length = time.Duration(*seconds * float64(time.Second))
	if o.quick {
		o.length = min(o.length, 2*time.Second)
	}
	if o.pages < 0 || o.pages > 256 || o.pages > 0 && o.six {
		return o, fmt.Errorf("-pages %d (want 1 to 256, as many as have streams, and not -6)", o.pages)
	}
	if o.length < 500*time.Millisecond || o.length > time.Minute || o.rounds < 1 {
		return o, fmt.Errorf("-seconds %g, -rounds %d (want 0.5 to 60 s, and 1 or more)", *seconds, o.rounds)
	}
	o.rates, err = parseRates(*rates)
	return o, err
}

func parseRates(text string) (rates []float64, err error) {
	for word := range strings.SplitSeq(text, ",") {
		r, err := strconv.ParseFloat(word, 64)
		if err != nil || !(r >= 1 && r <= 1e6) || len(rates) > 0 && r <= rates[len(rates)-1] {
			return nil, fmt.Errorf("-rates %q: %q (want rising numbers from 1 to 1000000)", text, word)
		}
		rates = append(rates, r)
	}
	return rates, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	if len(args) > 0 && args[0] == generatorCommand {
		return generate(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == pagesCommand {
		return keepOpen(ctx, args[1:], os.Stdin, stdout, stderr)
	}
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
	if b.pages > 0 {
		return b.measurePages(ctx, stdout)
	}
	report, err := b.measure(ctx)
	if err != nil {
		return err
	}
	if err := report.print(stdout); err != nil {
		return err
	}
	if err := kit.Save(o.json, report); err != nil {
		return err
	}
	return report.failure()
}
