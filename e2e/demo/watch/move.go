package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"drover/e2e/lab/site"
	"drover/internal/wait"
	"drover/pools"
	"drover/pools/resolve"
)

// Move follows a node that the farm has given to another tenant while it runs; plan is what
// the farm says of it now. Drover cordons and drains it, one reboot takes it to its new
// cluster, and drover removes its Node from the old one.
func (w *Watch) Move(ctx context.Context, m *Machine, plan *resolve.Plan) error {
	from := m.Plan.Cluster
	if plan == nil || plan.Cluster == from {
		return fmt.Errorf("the edit did not move %s", m.MAC())
	}
	m.Plan = plan
	w.Log.Say("%s belongs to %s now, with the labels %s; nothing is rebooted yet", plan.Node, plan.Cluster, labels.FormatLabels(plan.Labels))
	if err := w.drained(ctx, m); err != nil {
		return err
	}
	if err := m.guest.PowerOff(); err != nil {
		return err
	}
	m.Name += "-again" // with a console of its own
	if err := w.start(m); err != nil {
		return err
	}
	w.Log.Say("power cycle of %s", plan.Node)
	if err := w.Ready(ctx); err != nil {
		return err
	}
	return w.left(ctx, m, from)
}

// drained waits until drover has drained the node, and tells how it goes on.
func (w *Watch) drained(ctx context.Context, m *Machine) error {
	for said := ""; ; {
		var n struct {
			Move *pools.Move `json:"move"`
		}
		if err := w.Drover.Call(ctx, http.MethodGet, "/api/v1/nodes/"+m.Plan.Node, nil, &n); err != nil {
			return err
		}
		if n.Move != nil && n.Move.Summary() != said {
			said = n.Move.Summary()
			w.Log.Say("%-22s %s", m.Plan.Node, said)
		}
		if n.Move != nil && n.Move.Step == pools.MoveDrained {
			return nil
		}
		if wait.Sleep(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("%s is not drained: %s: %w", m.Plan.Node, said, context.Cause(ctx))
		}
	}
}

// left waits until the node is gone from the cluster that it was in.
func (w *Watch) left(ctx context.Context, m *Machine, from string) error {
	for {
		_, err := site.NodeOf(ctx, w.Cluster(from), m.Plan.Node)
		if errors.Is(err, site.ErrNoNode) {
			w.Log.Say("%-22s is gone from %s, and Ready in %s", m.Plan.Node, from, m.Plan.Cluster)
			return nil
		}
		if wait.Sleep(ctx, time.Second) != nil {
			return fmt.Errorf("%s is still in %s: %w", m.Plan.Node, from, errors.Join(err, context.Cause(ctx)))
		}
	}
}
