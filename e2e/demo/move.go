package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"drover/e2e/lab/site"
	"drover/pools"
)

// What the edit takes out of the farm's file, and what it puts there: the pool of
// the first machine goes to another tenant.
const (
	beforeMove = "    cluster: tenant-a\n    image: debian-12\n    tags: [dedicated]\n"
	afterMove  = "    cluster: tenant-b\n    image: debian-12\n    tags: [general]\n"
)

// move gives a node to another tenant while it runs: one edit of the farm's file,
// and one reboot. Drover cordons and drains it meanwhile, and removes its Node
// when the machine is Ready where it belongs.
func (d *demo) move(ctx context.Context) error {
	m := d.machines[0]
	from := m.plan.Cluster
	if moved, err := d.edit(m); err != nil || !moved {
		return err
	}
	d.log.say("%s belongs to %s now, with the labels %s; nothing is rebooted yet", m.plan.Node, m.plan.Cluster, labels.FormatLabels(m.plan.Labels))
	if err := d.drained(ctx, m); err != nil {
		return err
	}
	if err := m.guest.PowerOff(); err != nil {
		return err
	}
	m.Name += "-again" // with a console of its own
	m.done, m.boot.Started = false, time.Now()
	var err error
	if m.guest, err = d.PowerOn(m.Machine); err != nil {
		return err
	}
	d.log.say("power cycle of %s", m.plan.Node)
	if err := d.watch(ctx); err != nil {
		return err
	}
	return d.left(ctx, m, from)
}

// edit edits the file, and reports whether it has moved the machine: a farm that is
// not the demo's own is left as it is.
func (d *demo) edit(m *machine) (bool, error) {
	path := filepath.Join(d.Dir, "drover.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	edited := strings.Replace(string(text), beforeMove, afterMove, 1)
	if edited == string(text) {
		d.log.say("no node is moved: the pool of %s in %s is not the one that the demo knows", m.plan.Node, path)
		return false, nil
	}
	for _, line := range []struct{ mark, text string }{{"-", beforeMove}, {"+", afterMove}} {
		for text := range strings.Lines(line.text) {
			if !strings.Contains(text, "image:") {
				d.log.say("edit drover.yaml: %s%s", line.mark, strings.TrimRight(text, "\n"))
			}
		}
	}
	if err := os.WriteFile(path+".new", []byte(edited), 0o600); err != nil {
		return false, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return false, err
	}
	before := m.plan.Cluster
	if m.plan, err = d.Expect(m.mac()); err != nil {
		return false, err
	}
	if m.plan == nil || m.plan.Cluster == before {
		return false, fmt.Errorf("%s: the edit did not move %s", path, m.mac())
	}
	return true, nil
}

// drained waits until drover has drained the node, and tells how it goes on.
func (d *demo) drained(ctx context.Context, m *machine) error {
	for said := ""; ; {
		var n struct {
			Move *pools.Move `json:"move"`
		}
		if err := d.Drover.Call(ctx, http.MethodGet, "/api/v1/nodes/"+m.plan.Node, nil, &n); err != nil {
			return err
		}
		if n.Move != nil && n.Move.Summary() != said {
			said = n.Move.Summary()
			d.log.say("%-22s %s", m.plan.Node, said)
		}
		if n.Move != nil && n.Move.Step == pools.MoveDrained {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not drained: %s: %w", m.plan.Node, said, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// left waits until the node is gone from the cluster that it was in.
func (d *demo) left(ctx context.Context, m *machine, from string) error {
	for {
		_, err := d.Node(ctx, from, m.plan.Node)
		switch {
		case errors.Is(err, site.ErrNoNode):
			d.log.say("%-22s is gone from %s, and Ready in %s", m.plan.Node, from, m.plan.Cluster)
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is still in %s: %w", m.plan.Node, from, context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}
