// Demo boots three bare machines into the Kubernetes clusters of three tenants,
// with nothing faked: real firmware (in QEMU, without KVM), DHCP, TFTP and HTTP
// by the built drover, systemd from RAM, kubeadm join, real control planes.
//
//	go run ./e2e/demo          needs root; on Debian it installs what is missing
//	go run ./e2e/demo -keep    leaves everything running and says how to look around
//
// The farm is e2e/demo/drover.yaml. The demo exits 0, and ends with the line
// "demo: 3 of 3 nodes Ready in their own cluster", only if each machine is Ready
// in the cluster that the farm says, and in no other, with the labels and taints
// that the farm says, and really runs a pod; if a node that an edit gives to
// another tenant is drained, Ready there after its next boot and gone from where it
// was; and if a node stays Ready while drover is stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/lab/site"
	"drover/pools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// patience bounds how long the three machines may take together. Two cores and
// no KVM: each boot takes one to three minutes.
const patience = 20 * time.Minute

// demo is one run.
type demo struct {
	*site.Site
	log      *progress
	machines []*machine
}

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	keep := flags.Bool("keep", false, "leave everything running at the end, until Ctrl-C")
	farm := flags.String("c", "", "the farm's config file (default e2e/demo/drover.yaml)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d := &demo{log: newProgress(stdout)}
	if err := site.Check(ctx); err != nil {
		return err
	}
	built, err := site.Build(ctx, d.log)
	if err != nil {
		return err
	}
	if *farm == "" {
		*farm = filepath.Join(built.Root, "e2e", "demo", "drover.yaml")
	}
	added, err := readAdded(filepath.Join(built.Root, "e2e", "demo", "added.json"))
	if err != nil {
		return err
	}
	cache, err := buildcache.CacheDir()
	if err != nil {
		return err
	}
	d.Site, err = built.Open(ctx, site.Config{Name: "drover-demo", Dir: filepath.Join(cache, "demo"), Farm: *farm})
	if err != nil {
		return err
	}
	defer func() {
		d.log.say("cleaning up; logs and consoles stay in %s", d.Dir)
		err = errors.Join(err, d.Close())
		if ready, all := d.count(); err == nil || ready < all {
			fmt.Fprintln(stdout, d.verdict())
		}
	}()
	return d.play(ctx, added, *keep)
}

// play is the demo itself, on an open site.
func (d *demo) play(ctx context.Context, added pools.PoolNode, keep bool) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := d.powerOn(bounded, added); err != nil {
		return err
	}
	err := d.watch(bounded)
	if err == nil {
		err = d.move(bounded)
	}
	if err != nil {
		if ctx.Err() == nil { // nobody wants the story of what was interrupted
			d.showFailures()
		}
		return err
	}
	if err := d.outlive(bounded); err != nil {
		return err
	}
	if err := d.report(bounded); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	if err := d.StartDrover(bounded, d.Drover); err != nil {
		return err
	}
	d.lookAround()
	fmt.Fprintln(d.log.w, d.verdict())
	<-ctx.Done()
	return nil
}

// count returns how many machines are where they should be, and of how many.
func (d *demo) count() (ready, all int) {
	for _, m := range d.machines {
		if m.done {
			ready++
		}
	}
	return ready, len(d.machines)
}

// verdict is the last line.
func (d *demo) verdict() string {
	ready, all := d.count()
	return fmt.Sprintf("demo: %d of %d nodes Ready in their own cluster", ready, all)
}

// progress writes lines with the seconds since the start.
type progress struct {
	w     io.Writer
	start time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, start: time.Now()} }

func (p *progress) say(format string, args ...any) {
	fmt.Fprintf(p.w, "[%4.0f s] %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// Write makes a line of each line; for what reports its progress to a writer.
func (p *progress) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		p.say("%s", strings.TrimRight(line, "\n"))
	}
	return len(b), nil
}
