package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"drover/node/nodeconfig"
	"drover/pools"
	"drover/pools/boots"
)

// disks waits until the disks of the config are mounted: a node whose pods cannot run must
// not join. For an optional one it reports once that a tmpfs is in its place.
func (a *agent) disks(ctx context.Context) error {
	for _, m := range a.State.Mounts {
		device := nodeconfig.Device(m)
		if device == "" {
			continue
		}
		check := func(context.Context) error { return checkMounted(a.Root, m, device) }
		if !nodeconfig.IsOptional(m) {
			again := a.again(boots.StepOnline)
			if err := again.Do(ctx, check); err != nil {
				return err
			}
		} else if err := check(ctx); err != nil {
			a.Con.Printf("online", "warning: %v", err)
			a.Rep.Fail(boots.StepOnline, err)
		}
	}
	return nil
}

// checkMounted returns an error unless the file system of a disk is mounted.
func checkMounted(root string, m pools.Mount, device string) error {
	b, err := os.ReadFile(root + "/proc/self/mountinfo")
	if err != nil {
		return err
	}
	found := ""
	for line := range strings.Lines(string(b)) {
		// "36 35 98:0 /root /path options [optional fields] - type source options" (proc(5))
		before, after, _ := strings.Cut(line, " - ")
		fields, fs := strings.Fields(before), strings.Fields(after)
		if len(fields) > 4 && len(fs) > 1 && unescapeOctal(fields[4]) == m.Path {
			found = fs[0] // the last one hides the others
		}
	}
	switch {
	case found == m.Type, found != "" && found != "tmpfs" && m.Type == "auto":
		return nil
	case found == "":
		found = "nothing"
	}
	why := "it was not mounted, systemctl --failed says why"
	if _, err := os.Stat(root + device); err != nil {
		why = "there is no such disk"
	}
	return fmt.Errorf("mount %s: %s is there in place of %s: %s", m.Path, found, device, why)
}

// unescapeOctal replaces the escapes of /proc/self/mountinfo.
func unescapeOctal(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
