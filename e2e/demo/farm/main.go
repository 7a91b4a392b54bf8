// Farm makes a farm in an empty admin cluster, and boots three bare machines into tenants
// whose control planes are pods of that cluster:
//
//	go run ./e2e/demo/farm          needs root; on Debian it installs what is missing
//	go run ./e2e/demo/farm -keep    leaves everything running and says how to look around
//
// What it types are the two commands of docs/farm.md: helm install with values.yaml, and
// kubectl apply of objects.yaml. Nothing is faked but the machines, which QEMU emulates: the
// admin cluster has a kubelet on this host, and drover is a pod there without root.
//
// The demo exits 0, and ends with the line "demo-farm: 3 of 3 nodes Ready in hosted tenants",
// only if each machine is Ready in the tenant that the objects say, and in no other, and runs
// a pod; if a pod of one reaches that of another by a ClusterIP and by a DNS name; if logs,
// exec and a webhook reach a node that takes no connections; if one edit of an object, and a
// reboot, take a machine to another tenant; and if nothing of the tenants is left when the
// objects are deleted, nor of the demo on this host when it ends.
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
	"syscall"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/demo/watch"
	"drover/e2e/farm"
	"drover/e2e/lab/site"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo-farm:", err)
		os.Exit(1)
	}
}

// patience bounds the demo, once everything is built. Two cores and no KVM: a boot takes one
// to five minutes, and other work may share the machine.
const patience = time.Hour

// demo is one run.
type demo struct {
	*farm.Farm
	log      *watch.Log
	watch    *watch.Watch
	declared *contents
	tenants  map[string]*farm.Tenant
	dir      string // of this program's source, with the values and the objects
}

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("demo-farm", flag.ContinueOnError)
	keep := flags.Bool("keep", false, "leave everything running at the end, until Ctrl-C")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d := &demo{log: watch.NewLog(stdout), tenants: map[string]*farm.Tenant{}}
	if err := site.Check(ctx, "demo"); err != nil {
		return err
	}
	built, err := farm.Build(ctx, d.log.Lines())
	if err != nil {
		return err
	}
	if err := built.BuildAddOns(ctx, d.log.Lines()); err != nil {
		return err
	}
	if err := built.Preload(ctx); err != nil {
		return err
	}
	d.dir = filepath.Join(built.Root, "e2e", "demo", "farm")
	if d.declared, err = readFarm(d.dir); err != nil {
		return err
	}
	cache, err := buildcache.CacheDir()
	if err != nil {
		return err
	}
	d.Farm, err = built.Open(ctx, farm.Config{Name: "drover-demo-farm", Dir: filepath.Join(cache, "demo-farm"), Volumes: len(d.declared.tenants)})
	if err != nil {
		return err
	}
	d.watch = &watch.Watch{Log: d.log, Rack: d.Rack, Drover: d.Server, Cluster: func(name string) site.Cluster { return d.tenants[name] }}
	defer func() { err = d.end(err) }()
	return d.play(ctx, *keep)
}

// end removes everything, and prints the last line. Only the files of a run that failed are
// kept whole: an admin cluster has a gigabyte.
func (d *demo) end(err error) error {
	d.log.Say("cleaning up; logs and consoles stay in %s", d.Dir)
	err = errors.Join(err, d.Close())
	if err == nil {
		err = os.RemoveAll(filepath.Join(d.Dir, "admin"))
	}
	d.log.Say("nothing of it runs any more")
	if ready, all := d.watch.Count(); err == nil || ready < all {
		fmt.Fprintln(d.log, d.verdict())
	}
	return err
}

// verdict is the last line.
func (d *demo) verdict() string {
	ready, all := d.watch.Count()
	return fmt.Sprintf("demo-farm: %d of %d nodes Ready in hosted tenants", ready, all)
}

// play is the demo itself, in an empty admin cluster.
func (d *demo) play(ctx context.Context, keep bool) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, step := range []func(context.Context) error{d.install, d.apply, d.powerOn, d.controlPlanes, d.watch.Ready, d.konnectivity, d.services, d.move, d.report} {
		if err := step(bounded); err != nil {
			if ctx.Err() == nil { // nobody wants the story of what was interrupted
				d.story()
			}
			return err
		}
	}
	if keep {
		d.lookAround()
		fmt.Fprintln(d.log, d.verdict())
		<-ctx.Done()
		return nil
	}
	return d.remove(bounded)
}
