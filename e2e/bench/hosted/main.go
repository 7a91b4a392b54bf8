// Hosted measures tenants whose control planes run as pods of an admin cluster: drover's
// chart is installed, Tenants are applied one after the other, and all of them run at once
// when their memory is taken. Beside them runs one control plane as kubernetes-in-kubernetes
// lays it out, with the same programs, arguments, keys and data: a pod each for etcd, API
// server, controller manager and scheduler.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"drover/e2e/bench/kit"
	"drover/e2e/buildcache"
	"drover/e2e/farm"
	"drover/e2e/tenants"
)

func main() { kit.Main("bench-hosted", run) }

// The limits of each tenant.
const (
	maxJoinable = 15.0  // seconds
	maxMemory   = 330e6 // bytes of PSS
	maxTenants  = 60    // addresses
)

// options are the flags.
type options struct {
	tenants int
	alone   bool
	json    string
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench-hosted", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.tenants, "tenants", 8, "how many run at once")
	f.BoolVar(&o.alone, "alone", false, "without separate pods beside them")
	f.StringVar(&o.json, "json", "", "`file` for the figures, as JSON")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.tenants < 1 || o.tenants > maxTenants {
		return o, fmt.Errorf("want no arguments, and 1 to %d tenants", maxTenants)
	}
	return o, nil
}

// Report has the figures of all tenants.
type Report struct {
	Tenants  []*tenants.Tenant `json:"tenants"`
	Separate *tenants.Tenant   `json:"separate,omitempty"`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root, for network namespaces and a kubelet")
	}
	built, err := farm.Build(ctx, stderr)
	if err != nil {
		return err
	}
	cache, err := buildcache.CacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, "bench-hosted")
	f, err := built.Open(ctx, farm.Config{Name: "drover-bench-hosted", Dir: dir, Volumes: o.tenants + 1})
	if err != nil {
		return err
	}
	report, err := measure(ctx, f, o, stderr)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), kit.Save(o.json, report)); err != nil {
		return err
	}
	return errors.Join(report.print(stdout), report.check())
}

// measure starts the tenants one after the other, and takes their memory when all run.
func measure(ctx context.Context, f *farm.Farm, o options, stderr io.Writer) (*Report, error) {
	if err := tenants.Install(ctx, f); err != nil {
		return nil, err
	}
	r := &Report{}
	limited, cancel := context.WithTimeout(ctx, time.Duration(o.tenants+1)*3*time.Minute)
	defer cancel()
	for i := range o.tenants {
		t, err := tenants.Start(limited, f, fmt.Sprintf("tenant-%d", i+1), tenants.Address(i))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(stderr, "%s: nodes can join after %.1f s\n", t.Name, t.Joinable)
		r.Tenants = append(r.Tenants, t)
	}
	selector, err := "", error(nil)
	if !o.alone {
		if r.Separate, selector, err = tenants.Separate(limited, f, "separate", tenants.Address(o.tenants)); err != nil {
			return nil, err
		}
	}
	for _, t := range r.Tenants {
		if t.Memory, err = tenants.Memory(ctx, f, t.Selector()); err != nil {
			return nil, err
		}
	}
	if r.Separate != nil {
		r.Separate.Memory, err = tenants.Memory(ctx, f, selector)
	}
	return r, err
}

// programs are the columns, by the first 15 characters of their names.
var programs = []string{"etcd", "kube-apiserver", "kube-controller", "kube-scheduler", "proxy-server", tenants.Around}

func (r *Report) print(stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tReady s\tjoinable s\tetcd MB\tAPI server\tcontrollers\tscheduler\tkonnectivity\tpods\tall MB\n")
	row := func(name string, t *tenants.Tenant) {
		ready := "-" // drover keeps no separate pods
		if t.Ready > 0 {
			ready = fmt.Sprintf("%.1f", t.Ready)
		}
		fmt.Fprintf(w, "%s\t%s\t%.1f", name, ready, t.Joinable)
		for _, p := range programs {
			fmt.Fprintf(w, "\t%.0f", float64(t.Memory[p])/1e6)
		}
		fmt.Fprintf(w, "\t%.0f\n", float64(t.Memory.Total())/1e6)
	}
	for _, t := range r.Tenants {
		row(t.Name, t)
	}
	if r.Separate != nil {
		row("separate pods", r.Separate)
	}
	return w.Flush()
}

// check returns an error that names each limit that was exceeded.
func (r *Report) check() error {
	var errs []error
	for _, t := range r.Tenants {
		if t.Joinable > maxJoinable {
			errs = append(errs, fmt.Errorf("%s: nodes can join after %.1f s, want %.0f at most", t.Name, t.Joinable, maxJoinable))
		}
		if n := t.Memory.Total(); float64(n) > maxMemory {
			errs = append(errs, fmt.Errorf("%s: %.0f MB of memory, want %.0f at most", t.Name, float64(n)/1e6, maxMemory/1e6))
		}
	}
	return errors.Join(errs...)
}
