package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/pools/boots"
)

// TestAppliance runs the last stage of Dockerfile.image as a container engine would, with its
// entrypoint, a read-only root, the two capabilities that the docs name and no others, on
// the network of a rack. A UEFI machine boots from it: loader, kernel and image are those of
// the container. A tiny system stands in for the node image.
func TestAppliance(t *testing.T) {
	b := buildTiny(t, t.TempDir())
	a, err := buildcache.NewAppliance(t.Context(), t.Output(), filepath.Join(b.Root, "bin"), tinyTree(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})

	rack := openRack(t, "drover-e2e-appliance", netip.MustParsePrefix("10.77.0.1/24"))
	config, state := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(config, "drover.yaml"), []byte(read(t, "testdata/appliance.yaml")), 0o644); err != nil {
		t.Fatal(err)
	}
	runContainer(t, rack, a, config, state)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	d := rack.Observe(lab.Drover{State: state, API: "127.0.0.1:8443"})
	fixture.Until(ctx, t, "the server in the container", func() (bool, error) {
		_, err := d.Boots(ctx)
		return err == nil, err
	})
	const mac = "52:54:00:77:0a:01"
	g, err := rack.PowerOn(lab.Machine{Name: "n1", Firmware: lab.UEFI, NICs: card(mac)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("console: %q", g.Tail(40))
		}
	}()
	says(ctx, t, g, "tiny: done")
	all, err := d.Boots(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.MAC.String() == mac && reached(r, boots.StepLoader) && reached(r, boots.StepOnline) {
			return
		}
	}
	t.Errorf("got boots %+v", all)
}

// runContainer runs the appliance with runc until the end of the test.
func runContainer(t *testing.T, rack *lab.Rack, a *buildcache.Stage, config, state string) {
	t.Helper()
	capabilities := []string{"CAP_NET_RAW", "CAP_NET_BIND_SERVICE"}
	type object = map[string]any
	mount := func(at, kind, source string, options ...string) object {
		return object{"destination": at, "type": kind, "source": source, "options": append([]string{"nosuid", "nodev"}, options...)}
	}
	bundle := t.TempDir()
	content, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"root":       object{"path": a.Root, "readonly": true},
		"process": object{
			"user": object{"uid": 0, "gid": 0}, "cwd": "/", "args": a.Args, "env": a.Env, "noNewPrivileges": true,
			"capabilities": object{"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
		},
		"mounts": []object{
			mount("/proc", "proc", "proc"), mount("/tmp", "tmpfs", "tmpfs"), {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
			mount("/etc/drover", "bind", config, "bind", "ro"), mount("/var/lib/drover", "bind", state, "bind", "rw"),
		},
		"linux": object{"namespaces": []object{
			{"type": "mount"}, {"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "network", "path": "/run/netns/" + rack.Name},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	id, runtime := fmt.Sprintf("drover-appliance-%d", os.Getpid()), filepath.Join(bundle, "state")
	p, err := rack.Start("appliance", exec.Command("runc", "--root", runtime, "run", "--bundle", bundle, id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the container:\n%s", read(t, p.Log))
		}
		if err := p.Stop(20 * time.Second); err != nil {
			t.Error(err)
		}
		_ = exec.Command("runc", "--root", runtime, "delete", "--force", id).Run() // if runc was killed
	})
}
