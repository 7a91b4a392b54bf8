package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"drover/e2e/demo/watch"
)

// What the edit takes out of the farm's file, and what it puts there: the pool of
// the first machine goes to another tenant.
const (
	beforeMove = "    cluster: tenant-a\n    image: debian-12\n    tags: [dedicated]\n"
	afterMove  = "    cluster: tenant-b\n    image: debian-12\n    tags: [general]\n"
)

// move gives a node to another tenant while it runs: one edit of the farm's file,
// and one reboot.
func (d *demo) move(ctx context.Context) error {
	m := d.watch.Machines[0]
	if edited, err := d.edit(m); err != nil || !edited {
		return err
	}
	plan, err := d.Expect(m.MAC())
	if err != nil {
		return err
	}
	return d.watch.Move(ctx, m, plan)
}

// edit edits the file, and reports whether it has: a farm that is not the demo's own is
// left as it is.
func (d *demo) edit(m *watch.Machine) (bool, error) {
	path := filepath.Join(d.Dir, "drover.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	edited := strings.Replace(string(text), beforeMove, afterMove, 1)
	if edited == string(text) {
		d.log.Say("no node is moved: the pool of %s in %s is not the one that the demo knows", m.Plan.Node, path)
		return false, nil
	}
	for _, line := range []struct{ mark, text string }{{"-", beforeMove}, {"+", afterMove}} {
		for text := range strings.Lines(line.text) {
			if !strings.Contains(text, "image:") {
				d.log.Say("edit drover.yaml: %s%s", line.mark, strings.TrimRight(text, "\n"))
			}
		}
	}
	if err := os.WriteFile(path+".new", []byte(edited), 0o600); err != nil {
		return false, err
	}
	return true, os.Rename(path+".new", path)
}
