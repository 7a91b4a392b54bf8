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
// was; if an image goes through a channel and back; and if a node stays Ready while drover is stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/demo/watch"
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
// no KVM: each boot takes one to three minutes, and some ten where others work, too.
const patience = 45 * time.Minute

// demo is one run.
type demo struct {
	*site.Site
	log   *watch.Log
	watch *watch.Watch
	steps int // that began
}

// allSteps is how many steps a run has.
const allSteps = 8

// step says which step begins. The times in it are of two cores.
func (d *demo) step(what string) {
	d.steps++
	d.log.Say("%d of %d: %s", d.steps, allSteps, what)
}

// build makes the parts, as far as they are not there.
func (d *demo) build(ctx context.Context) (*site.Built, error) {
	built, steps, err := site.Start(d.log.Lines())
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		d.step(s.What)
		if err := s.Do(ctx); err != nil {
			return nil, err
		}
	}
	return built, nil
}

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	keep := flags.Bool("keep", false, "leave everything running at the end, until Ctrl-C")
	farm := flags.String("c", "", "the farm's config file (default e2e/demo/drover.yaml)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d := &demo{log: watch.NewLog(stdout)}
	if err := site.Check(ctx, "demo"); err != nil {
		return err
	}
	built, err := d.build(ctx)
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
	d.step("start a rack and three control planes (a minute)")
	d.Site, err = built.Open(ctx, site.Config{Name: "drover-demo", Dir: filepath.Join(cache, "demo"), Farm: *farm})
	if err != nil {
		return err
	}
	d.watch = &watch.Watch{Log: d.log, Rack: d.Rack, Drover: d.Drover, Cluster: func(name string) site.Cluster { return d.Planes[name] }}
	defer func() {
		d.log.Say("cleaning up; logs and consoles stay in %s", d.Dir)
		err = errors.Join(err, d.Close())
		if ready, all := d.watch.Count(); err == nil || ready < all {
			fmt.Fprintln(stdout, d.verdict())
		}
	}()
	return d.play(ctx, built, added, *keep)
}

// play is the demo itself, on an open site.
func (d *demo) play(ctx context.Context, built *site.Built, added pools.PoolNode, keep bool) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d.step("switch on three machines, which boot and join (some 5 minutes)")
	if err := d.powerOn(bounded, added); err != nil {
		return err
	}
	err := d.watch.Ready(bounded)
	if err == nil {
		d.step("move a node to another tenant by an edit and a reboot (some 3 minutes)")
		err = d.move(bounded)
	}
	if err != nil {
		if ctx.Err() == nil { // nobody wants the story of what was interrupted
			d.showFailures()
		}
		return err
	}
	d.step("an image: build, canary, promote, and back (seconds)")
	if err := d.images(bounded, built); err != nil {
		return err
	}
	d.step("stop drover: a node stays Ready (a minute)")
	if err := d.outlive(bounded); err != nil {
		return err
	}
	if err := d.watch.Report(bounded, slices.Sorted(maps.Keys(d.Planes))...); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	if err := d.StartDrover(bounded, d.Drover); err != nil {
		return err
	}
	d.lookAround()
	fmt.Fprintln(d.log, d.verdict())
	<-ctx.Done()
	return nil
}

// verdict is the last line.
func (d *demo) verdict() string {
	ready, all := d.watch.Count()
	return fmt.Sprintf("demo: %d of %d nodes Ready in their own cluster", ready, all)
}
