package e2e_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"drover/deploy/serverimage"
	"drover/e2e/buildcache"
	"drover/e2e/fixture"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
)

// engine runs a container of the server's image $3 with containerd, whose programs are in $1
// and whose files are in $2, on the network that it is started in. Of the capabilities that
// containerd gives by default all but two are dropped, nothing can regain them, and the root is
// read-only. Nothing of it stays on the host: /run is its own.
const engine = `set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
PATH="$1:$PATH"
containerd --config "$2/containerd.toml" &
daemon=$!
export CONTAINERD_ADDRESS=$2/containerd.sock
until ctr version >"$2/version" 2>&1; do sleep 0.2; done
ctr images import --local "$2/image.tar"
drop=
for name in CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD SETGID SETUID SETFCAP SETPCAP SYS_CHROOT KILL AUDIT_WRITE; do
	drop="$drop --cap-drop CAP_$name"
done
trap 'ctr tasks kill drover' TERM
ctr run --rm --net-host --read-only $drop \
	--mount "type=bind,src=$2/config,dst=/etc/drover,options=rbind:ro" \
	--mount "type=bind,src=$2/state,dst=/var/lib/drover,options=rbind:rw" \
	"$3" drover /usr/bin/drover serve --images "/$4" --loaders "/$5" &
container=$!
wait $container || wait $container || : # a signal ends the first
kill $daemon
wait $daemon || :
`

// TestContainerBoots runs the server's image in containerd: not as root, with two capabilities
// and no others. A UEFI machine boots from it: loader, kernel and image are those of the container.
// A tiny system stands in for the node image.
func TestContainerBoots(t *testing.T) {
	b := buildTiny(t, t.TempDir())
	programs, err := buildcache.Containerd(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	dir := containerFiles(t, b)
	rack := openRack(t, "drover-e2e-container", netip.MustParsePrefix("10.77.0.1/24"))
	p, err := rack.Start("container", exec.Command("unshare", "--mount", "sh", "-c", engine, "engine", programs, dir, containerImage, serverimage.Images, serverimage.Loaders))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the container:\n%s", read(t, p.Log))
		}
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	d := rack.Observe(lab.Drover{State: filepath.Join(dir, "state"), API: "127.0.0.1:8443"})
	fixture.Until(ctx, t, "the server in the container", func() (bool, error) {
		_, err := d.Boots(ctx)
		return err == nil || !p.Running(), err
	})
	confined(ctx, t, filepath.Join(programs, "ctr"), filepath.Join(dir, "containerd.sock"))
	g, err := rack.PowerOn(lab.Machine{Name: "n1", Firmware: lab.UEFI, NICs: card("52:54:00:77:0a:01")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console: %q", g.Tail(40))
		}
	})
	says(ctx, t, g, "tiny: done")
	all, err := d.Boots(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fixture.WantText(t, "the boot", fmt.Sprintf("%+v", all), "52:54:00:77:0a:01", "loader", "online")
}

const containerImage = "localhost/drover:test"

// containerFiles makes the folder of a container: its image, its config, and its state, which
// belongs to its user.
func containerFiles(t *testing.T, b *site.Built) string {
	t.Helper()
	dir, images := t.TempDir(), t.TempDir() // of all images, the one
	if out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(b.Images, site.TinyAMD64), images).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	image, err := os.Create(filepath.Join(dir, "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	err = serverimage.Write(image, serverimage.Config{
		Name: containerImage, Programs: map[string]string{runtime.GOARCH: b.Drover}, Images: images, Loaders: b.Loaders,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "state"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Join(dir, "state"), serverimage.User, serverimage.User); err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(read(t, "testdata/appliance.yaml"), "image: debian-12", "image: "+site.TinyAMD64, 1)
	for name, text := range map[string]string{
		"config/drover.yaml": config,
		"containerd.toml": fmt.Sprintf(`version = 3
root = "%[1]s/root"
state = "%[1]s/run"
disabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]
[grpc]
address = "%[1]s/containerd.sock"
[ttrpc]
address = "%[1]s/containerd.sock.ttrpc"
`, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// confined checks the user and the capabilities of the container's process.
func confined(ctx context.Context, t *testing.T, ctr, socket string) {
	t.Helper()
	out, err := exec.CommandContext(ctx, ctr, "--address", socket, "tasks", "list").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, row, _ := strings.Cut(string(out), "\ndrover")
	fields := strings.Fields(row)
	if len(fields) < 2 {
		t.Fatalf("got tasks %s", out)
	}
	var got []string
	for line := range strings.Lines(read(t, "/proc/"+fields[0]+"/status")) {
		switch name, _, _ := strings.Cut(line, ":"); name {
		case "Uid", "Gid", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs":
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
	}
	// CAP_NET_BIND_SERVICE is bit 10, and CAP_NET_RAW is bit 13.
	const want = "Uid: 65532 65532 65532 65532, Gid: 65532 65532 65532 65532, CapPrm: 0000000000002400, CapEff: 0000000000002400, CapBnd: 0000000000002400, NoNewPrivs: 1"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
}
