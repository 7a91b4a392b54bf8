package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/bench/kit"
	"drover/e2e/buildcache"
)

func main() { kit.Main("swarm", run) }

// options are the flags.
type options struct {
	machines   int
	racks      int
	every      time.Duration // between racks
	undeclared int           // of the machines
	slow, mad  int           // of the machines
	loss       float64       // percent of the packets, each way
	delay      time.Duration // each way
	root       int           // MB of the root image
	servers    int           // of the farm
	kill       string        // steps before which a server is killed
	patience   time.Duration // of the whole run
	name       string
	json       string
	drover     string
	keep       bool

	inside, from, source string // of the second stage: see enter
}

// Limits of the flags: addresses of machines and of relay agents.
const (
	maxMachines = 60_000
	maxRacks    = 200
)

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("swarm", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.machines, "n", 100, "how `many` machines boot")
	f.IntVar(&o.racks, "racks", 1, "in how `many` racks, each behind a relay agent; they are switched on one after the other")
	f.DurationVar(&o.every, "every", 2*time.Second, "`time` between two racks")
	f.IntVar(&o.undeclared, "undeclared", 0, "how `many` of them no node declares")
	f.IntVar(&o.slow, "slow", 0, "how `many` of them receive 1 MB/s only")
	f.IntVar(&o.mad, "mad", 0, "how `many` more machines misbehave: they never come up, and must harm none that does")
	f.Float64Var(&o.loss, "loss", 0, "`percent` of the packets that are lost, each way")
	f.DurationVar(&o.delay, "delay", 0, "`time` that a packet takes, each way")
	f.IntVar(&o.root, "root", 4, "`MB` of the root image")
	f.IntVar(&o.servers, "servers", 1, "how `many` servers the farm has: 1 or 2")
	f.StringVar(&o.kill, "kill", "", "comma-separated `steps`: at each, all machines boot, one of two servers is killed when they are there, and it comes back when they are up; all: each step")
	f.DurationVar(&o.patience, "patience", 10*time.Minute, "`time` limit from the first DISCOVER to the last machine")
	f.StringVar(&o.name, "name", "drover-swarm", "`name` of the server's network namespace")
	f.StringVar(&o.json, "json", "", "`file` for all figures, as JSON")
	f.StringVar(&o.drover, "drover", "", "the `program` to measure; default: built from this source")
	f.BoolVar(&o.keep, "keep", false, "leave config, state and logs")
	for name, to := range map[string]*string{"inside": &o.inside, "from": &o.from, "source": &o.source} {
		f.StringVar(to, name, "", "set by the tool itself")
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	return o, o.check(f.Args())
}

func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unknown argument %q", rest[0])
	case o.machines < 1 || o.mad < 0 || o.machines+o.mad > maxMachines:
		return fmt.Errorf("-n %d, -mad %d (want 1 to %d machines)", o.machines, o.mad, maxMachines)
	case o.racks < 1 || o.racks > min(maxRacks, o.machines):
		return fmt.Errorf("-racks %d (want 1 to %d, and no empty rack)", o.racks, maxRacks)
	case o.slow < 0 || o.undeclared < 0 || o.slow > o.machines || o.undeclared > o.machines:
		return fmt.Errorf("-slow %d, -undeclared %d (there are %d machines)", o.slow, o.undeclared, o.machines)
	case o.loss < 0 || o.loss > 50 || o.delay < 0 || o.delay > time.Second:
		return fmt.Errorf("-loss %g, -delay %s (want up to 50 percent, and up to 1s)", o.loss, o.delay)
	case o.servers < 1 || o.servers > 2 || o.servers == 2 && o.undeclared > 0:
		return fmt.Errorf("-servers %d, -undeclared %d (want 1 or 2 servers, and 2 of declared machines alone)", o.servers, o.undeclared)
	case o.kill != "" && (o.servers != 2 || o.mad > 0 || len(o.kills()) == 0):
		return fmt.Errorf("-kill %s (want 2 servers, no mad machines, and steps of %q)", o.kill, killSteps())
	case o.root < 1 || o.root > 1024:
		return fmt.Errorf("-root %d (want 1 to 1024 MB)", o.root)
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root, to make network namespaces")
	}
	if o.inside == "" {
		return enter(ctx, o, args)
	}
	defer func() {
		if !o.keep {
			err = errors.Join(err, os.RemoveAll(o.inside))
		}
	}()
	s, err := openStage(ctx, o, stderr)
	if err != nil {
		return err
	}
	report, err := s.storm(ctx)
	if err = errors.Join(err, s.close()); err != nil {
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

// enter builds what a run needs, and starts the tool anew in a network namespace without a
// name, that of the machines: all sockets of the process are there then, and it ends with the
// process.
func enter(ctx context.Context, o options, args []string) error {
	dir, err := os.MkdirTemp("", "drover-swarm-")
	if err != nil {
		return err
	}
	failed := func(err error) error { return errors.Join(err, os.RemoveAll(dir)) }
	program, from, err := kit.FindDrover(ctx, dir, o.drover)
	if err != nil {
		return failed(err)
	}
	source, err := buildcache.SourceRoot()
	if err != nil {
		return failed(err)
	}
	again := append([]string{os.Args[0]}, args...)
	again = append(again, "-inside", dir, "-drover", program, "-from", from, "-source", source)
	runtime.LockOSThread() // exec keeps the namespace of this thread
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return failed(fmt.Errorf("network namespace of the machines: %w", err))
	}
	return failed(unix.Exec("/proc/self/exe", again, os.Environ()))
}

// The addresses of a run.
var (
	routerAddr   = netip.MustParseAddr("10.28.0.1")
	machinesNet  = netip.MustParsePrefix("10.29.0.0/16")
	apiAddr      = "127.0.0.1:8443"
	firstDynamic = netip.MustParseAddr("10.29.128.0") // of machines that no node declares
)

// serverAddr returns the address of a server.
func serverAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 28, 0, byte(2 + i)}) }

// relayAddr returns the address of the relay agent of a rack.
func relayAddr(rack int) netip.Addr { return netip.AddrFrom4([4]byte{10, 29, 0, byte(1 + rack)}) }

// declaredAddr returns the address of a machine in the config.
func declaredAddr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 29, byte(1 + i/250), byte(1 + i%250)})
}

// say prints a line of progress.
func say(log io.Writer, format string, args ...any) {
	fmt.Fprintln(log, strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}
