package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"drover/e2e/lab/site"
	"drover/pools/boots"
)

// Report prints the nodes and pods of clusters and each node's timeline, and checks that
// every cluster has its own nodes and no others, that nothing was written to a
// disk, and that all is as it was when it was seen last.
func (w *Watch) Report(ctx context.Context, clusters ...string) error {
	var errs []error
	for _, cluster := range clusters {
		text, err := w.Cluster(cluster).Kubectl(ctx, nil, "get", "nodes", "--show-labels")
		if err != nil {
			return err
		}
		pods, err := w.Cluster(cluster).Kubectl(ctx, nil, "get", "pods", "-o", "wide")
		if err != nil {
			return err
		}
		fmt.Fprintf(w.Log, "\n%s$ kubectl get nodes --show-labels\n%s%s$ kubectl get pods -o wide\n%s", cluster, text, cluster, pods)
		errs = append(errs, w.alone(ctx, cluster))
	}
	fmt.Fprintln(w.Log)
	w.timelines()
	for _, m := range w.Machines {
		if _, err := site.LookIn(ctx, w.Cluster(m.Plan.Cluster), m.Plan); err != nil {
			m.done = false
			errs = append(errs, fmt.Errorf("%s %w", m.Plan.Node, err))
		}
		if n, err := m.guest.DiskUsed(); n != 0 || err != nil {
			errs = append(errs, fmt.Errorf("%d bytes were written to the disk of %s: %w", n, m.Name, err))
		}
	}
	return errors.Join(errs...)
}

// alone checks that a cluster has exactly the nodes that the farm says.
func (w *Watch) alone(ctx context.Context, cluster string) error {
	got, err := site.NodesOf(ctx, w.Cluster(cluster))
	if err != nil {
		return err
	}
	var want []string
	for _, m := range w.Machines {
		if m.Plan.Cluster == cluster {
			want = append(want, m.Plan.Node)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("cluster %s has nodes %v, the farm says %v", cluster, got, want)
	}
	return nil
}

// timelines prints, for each node, the seconds from its DISCOVER to each step.
func (w *Watch) timelines() {
	fmt.Fprintln(w.Log, "Seconds from DISCOVER to each step:")
	t := tabwriter.NewWriter(w.Log, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer t.Flush()
	fmt.Fprint(t, "step\t")
	for _, m := range w.Machines {
		fmt.Fprintf(t, "%s\t", m.Plan.Node)
	}
	for _, s := range boots.Steps() {
		fmt.Fprintf(t, "\n%s\t", s.Step)
		for _, m := range w.Machines {
			fmt.Fprintf(t, "%s\t", m.at(s.Step))
		}
	}
	fmt.Fprintln(t)
}

// Failures prints what helps to see why a machine did not get there.
func (w *Watch) Failures() {
	for _, m := range w.Machines {
		if !m.done {
			fmt.Fprintf(w.Log, "\n%s %s. The end of its console (%s):\n  %s\n", m.Plan.Node, m.state, m.guest.Console,
				strings.Join(m.guest.Tail(25), "\n  "))
		}
	}
}
