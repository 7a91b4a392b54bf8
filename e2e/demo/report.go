package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// away is how long drover is stopped. Kubernetes calls a node NotReady when it
// has not heard of it for 50 s (node-monitor-grace-period); a node that still
// is Ready after more than that has told so without drover.
const away = 55 * time.Second

// outlive stops drover and shows that a node stays Ready.
func (d *demo) outlive(ctx context.Context) error {
	m := d.watch.Machines[0]
	if err := d.Drover.Stop(); err != nil {
		return fmt.Errorf("drover did not end well: %w", err)
	}
	stopped := time.Now()
	d.log.Say("drover is stopped; %s has to stay Ready without it for %s", m.Plan.Node, away)
	conn, err := d.Dial(ctx, "tcp", d.Drover.API)
	if err == nil {
		return errors.Join(errors.New("drover is stopped, but its port is still open"), conn.Close())
	}
	for time.Since(stopped) < away {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(10*time.Second, away-time.Since(stopped))):
		}
		beat, err := d.Heartbeat(ctx, m.Plan.Cluster, m.Plan.Node)
		if err != nil {
			return err
		}
		n, err := d.Node(ctx, m.Plan.Cluster, m.Plan.Node)
		switch {
		case err != nil:
			return err
		case !n.Ready():
			return fmt.Errorf("%s is no longer Ready, %.0f s after drover was stopped", m.Plan.Node, time.Since(stopped).Seconds())
		}
		d.log.Say("%s is Ready, %.0f s after drover was stopped; its last heartbeat was %.0f s ago",
			m.Plan.Node, time.Since(stopped).Seconds(), time.Since(beat).Seconds())
		if time.Since(stopped) >= away && beat.Sub(stopped) < away-20*time.Second {
			return fmt.Errorf("%s has sent no heartbeat for 20 s", m.Plan.Node)
		}
	}
	return nil
}

// showFailures prints what helps to see why a machine did not get there.
func (d *demo) showFailures() {
	d.watch.Failures()
	fmt.Fprintf(d.log, "\nThe end of drover's log (%s):\n  %s\n\n", d.Drover.Log(), strings.ReplaceAll(d.Drover.Tail(40), "\n", "\n  "))
}

// lookAround says what there is to see while everything runs.
func (d *demo) lookAround() {
	in := "ip netns exec " + d.Name
	fmt.Fprintf(d.log, "\nEverything is running. To look around, as root:\n")
	for _, cluster := range slices.Sorted(maps.Keys(d.Planes)) {
		fmt.Fprintf(d.log, "  %s %s --kubeconfig %s get nodes,pods -o wide\n", in, d.KubectlPath(), d.Planes[cluster].Admin)
	}
	for _, m := range d.watch.Machines {
		fmt.Fprintf(d.log, "  tail -f %s\n", m.Console())
	}
	fmt.Fprintf(d.log, `  tail -f %[1]s
  %[2]s %[3]s boot list --token-file %[4]s
  %[2]s %[3]s node list --token-file %[4]s
  ls %[6]s
The page is http://%[5]s/ inside of the namespace; it asks for the token in that file.
Ctrl-C, or kill %[7]d, stops and removes it all.
`, d.Drover.Log(), in, d.Drover.Binary, d.Drover.TokenFile(), d.Drover.API, filepath.Clean(d.Dir), os.Getpid())
}
