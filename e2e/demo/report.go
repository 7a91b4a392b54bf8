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
	"text/tabwriter"
	"time"

	"drover/pools/boots"
)

// away is how long drover is stopped. Kubernetes calls a node NotReady when it
// has not heard of it for 50 s (node-monitor-grace-period); a node that still
// is Ready after more than that has told so without drover.
const away = 55 * time.Second

// outlive stops drover and shows that a node stays Ready.
func (d *demo) outlive(ctx context.Context) error {
	m := d.machines[0]
	if err := d.Drover.Stop(); err != nil {
		return fmt.Errorf("drover did not end well: %w", err)
	}
	stopped := time.Now()
	d.log.say("drover is stopped; %s has to stay Ready without it for %s", m.plan.Node, away)
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
		beat, err := d.Heartbeat(ctx, m.plan.Cluster, m.plan.Node)
		if err != nil {
			return err
		}
		n, err := d.Node(ctx, m.plan.Cluster, m.plan.Node)
		switch {
		case err != nil:
			return err
		case !n.Ready():
			return fmt.Errorf("%s is no longer Ready, %.0f s after drover was stopped", m.plan.Node, time.Since(stopped).Seconds())
		}
		d.log.say("%s is Ready, %.0f s after drover was stopped; its last heartbeat was %.0f s ago",
			m.plan.Node, time.Since(stopped).Seconds(), time.Since(beat).Seconds())
		if time.Since(stopped) >= away && beat.Sub(stopped) < away-20*time.Second {
			return fmt.Errorf("%s has sent no heartbeat for 20 s", m.plan.Node)
		}
	}
	return nil
}

// report prints each cluster's nodes and each node's timeline, and checks that
// every cluster has its own nodes and no others, that nothing was written to a
// disk, and that all is as it was when it was seen last.
func (d *demo) report(ctx context.Context) error {
	var errs []error
	for _, cluster := range slices.Sorted(maps.Keys(d.Planes)) {
		text, err := d.Planes[cluster].Kubectl(ctx, nil, "get", "nodes", "--show-labels")
		if err != nil {
			return err
		}
		pods, err := d.Planes[cluster].Kubectl(ctx, nil, "get", "pods", "-o", "wide")
		if err != nil {
			return err
		}
		fmt.Fprintf(d.log.w, "\n%s$ kubectl get nodes --show-labels\n%s%s$ kubectl get pods -o wide\n%s", cluster, text, cluster, pods)
		errs = append(errs, d.alone(ctx, cluster))
	}
	fmt.Fprintln(d.log.w)
	d.timelines()
	for _, m := range d.machines {
		if _, err := d.Look(ctx, m.plan); err != nil {
			m.done = false
			errs = append(errs, fmt.Errorf("%s %w", m.plan.Node, err))
		}
		if n, err := m.guest.DiskUsed(); n != 0 || err != nil {
			errs = append(errs, fmt.Errorf("%d bytes were written to the disk of %s: %w", n, m.Name, err))
		}
	}
	return errors.Join(errs...)
}

// alone checks that a cluster has exactly the nodes that the farm says.
func (d *demo) alone(ctx context.Context, cluster string) error {
	got, err := d.Nodes(ctx, cluster)
	if err != nil {
		return err
	}
	var want []string
	for _, m := range d.machines {
		if m.plan.Cluster == cluster {
			want = append(want, m.plan.Node)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("cluster %s has nodes %v, the farm says %v", cluster, got, want)
	}
	return nil
}

// timelines prints, for each node, the seconds from its DISCOVER to each step.
func (d *demo) timelines() {
	fmt.Fprintln(d.log.w, "Seconds from DISCOVER to each step:")
	t := tabwriter.NewWriter(d.log.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer t.Flush()
	fmt.Fprint(t, "step\t")
	for _, m := range d.machines {
		fmt.Fprintf(t, "%s\t", m.plan.Node)
	}
	for _, s := range boots.Steps() {
		fmt.Fprintf(t, "\n%s\t", s.Step)
		for _, m := range d.machines {
			fmt.Fprintf(t, "%s\t", m.at(s.Step))
		}
	}
	fmt.Fprintln(t)
}

// at returns when the machine's boot came to a step.
func (m *machine) at(step boots.Step) string {
	s, ok := m.boot.Reached(step)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f", s.Time.Sub(m.boot.Started).Seconds())
}

// showFailures prints what helps to see why a machine did not get there.
func (d *demo) showFailures() {
	for _, m := range d.machines {
		if !m.done {
			fmt.Fprintf(d.log.w, "\n%s %s. The end of its console (%s):\n  %s\n", m.plan.Node, m.state, m.guest.Console,
				strings.Join(m.guest.Tail(25), "\n  "))
		}
	}
	fmt.Fprintf(d.log.w, "\nThe end of drover's log (%s):\n  %s\n\n", d.Drover.Log(), strings.ReplaceAll(d.Drover.Tail(40), "\n", "\n  "))
}

// lookAround says what there is to see while everything runs.
func (d *demo) lookAround() {
	in := "ip netns exec " + d.Name
	fmt.Fprintf(d.log.w, "\nEverything is running. To look around, as root:\n")
	for _, cluster := range slices.Sorted(maps.Keys(d.Planes)) {
		fmt.Fprintf(d.log.w, "  %s %s --kubeconfig %s get nodes,pods -o wide\n", in, d.KubectlPath(), d.Planes[cluster].Admin)
	}
	for _, m := range d.machines {
		fmt.Fprintf(d.log.w, "  tail -f %s\n", m.guest.Console)
	}
	fmt.Fprintf(d.log.w, `  tail -f %[1]s
  %[2]s %[3]s boot list --token-file %[4]s
  %[2]s %[3]s node list --token-file %[4]s
  ls %[6]s
The page is http://%[5]s/ inside of the namespace; it asks for the token in that file.
Ctrl-C, or kill %[7]d, stops and removes it all.
`, d.Drover.Log(), in, d.Drover.Binary, d.Drover.TokenFile(), d.Drover.API, filepath.Clean(d.Dir), os.Getpid())
}
