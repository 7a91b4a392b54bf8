package buildcache

import (
	"archive/tar"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drover/deploy/oci"
	"drover/e2e/fixture"
)

// node runs containerd on the files that the layer in $1 brings, as a node has them: behind an
// overlay, and with /var/lib/containerd in RAM. The commands of the unit are in $2. It prints
// the images, the files of them, and what containerd complained about.
const node = `set -eu
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /run
mkdir -p /var/lib/containerd /run/new /run/layer /run/images
tar -C /run/layer --xattrs --xattrs-include='*' -xf "$1"
mount -t overlay overlay -o lowerdir=/run/layer/usr/share:/usr/share /usr/share
eval "$2"
cat >/run/config.toml <<END
version = 3
disabled_plugins = ['io.containerd.nri.v1.nri', 'io.containerd.internal.v1.opt']
END
containerd --config /run/config.toml >/run/log 2>&1 &
pid=$!
trap 'kill $pid; wait $pid' EXIT
ctr() { command ctr -n k8s.io "$@"; }
until [ "$(ctr images ls 2>/dev/null | grep -c io.cri-containerd.image=managed)" -ge 4 ]; do
	kill -0 $pid || { cat /run/log; exit 1; }
	sleep 0.1
done
ctr images ls -q | grep /
for name in plain deletes; do
	mkdir /run/images/$name
	ctr images mount --rw lab.example/$name:1 /run/images/$name >/dev/null
	(cd /run/images/$name && find . -type f | sort)
	ctr images unmount /run/images/$name >/dev/null
done
ctr content ls -q | wc -l
grep -E 'level=(error|fatal)|is not ok|not unpacked|update reference' /run/log | grep -v 'no network config' || true
`

// preloadedLayout writes two images of two layers. The upper one of lab.example/deletes:1
// deletes files of the lower one.
func preloadedLayout(t *testing.T) (dir string) {
	t.Helper()
	l := oci.Layout{Dir: t.TempDir()}
	layer := func(names ...string) oci.Blob {
		b, err := l.Layer(func(w *tar.Writer) error {
			for _, name := range names {
				h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Uid: 7}
				if name == "capable" {
					h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"}
				}
				if err := w.WriteHeader(h); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	below := layer("a", "capable", "d/old")
	for name, above := range map[string]oci.Blob{"plain": layer("b"), "deletes": layer(".wh.a", "d/.wh..wh..opq", "d/new")} {
		if err := l.Add(oci.Image{Name: "lab.example/" + name + ":1", Layers: []oci.Blob{below, above}, Entrypoint: []string{"/a"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Dir
}

// TestPreload writes a layer with two images, and starts containerd where a node has it. It
// knows both images, without a registry and without their layers.
func TestPreload(t *testing.T) {
	fixture.Root(t)
	if !fixture.Must() {
		fixture.Missing(t, "containerd: set DROVER_E2E=1 to build it")
	}
	ctrd, err := Containerd(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	root, err := SourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	layer := filepath.Join(t.TempDir(), "layer.tar")
	if err := preload(t.Context(), t.Output(), root, ctrd, layer, nil, preloadedLayout(t)); err != nil {
		t.Fatal(err)
	}
	wantLayer(t, layer)
	cmd := exec.Command("unshare", "--mount", "sh", "-c", node, "sh", layer, unitCommands(t))
	cmd.Env = append(os.Environ(), "PATH="+ctrd+":"+os.Getenv("PATH"))
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fixture.Golden(t, "testdata/preloaded.txt", out)
}

// unitCommands returns the commands of the unit that gives containerd its images, for a shell.
func unitCommands(t *testing.T) string {
	t.Helper()
	text := fixture.ReadFile(t, "../../nodeimage/root/usr/lib/systemd/system/containerd-preloaded.service")
	var lines []string
	for _, m := range regexp.MustCompile(`(?m)^Exec(?:Condition|Start)=(.*)$`).FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.NewReplacer("$$", "$", "%%", "%").Replace(m[1]))
	}
	if len(lines) != 2 {
		t.Fatalf("the unit has the commands %q, want two", lines)
	}
	return strings.Join(lines, "\n")
}

// wantLayer fails the test unless the layer has the files of images with their owners and
// attributes, and no device, which would delete a file of the node.
func wantLayer(t *testing.T, layer string) {
	t.Helper()
	f, err := os.Open(layer)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var capable bool
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(h.Name, "usr/share/containerd-preloaded/") || h.Typeflag == tar.TypeChar {
			t.Errorf("%s, type %c", h.Name, h.Typeflag)
		}
		if filepath.Base(h.Name) == "capable" {
			capable = h.Uid == 7 && h.PAXRecords["SCHILY.xattr.security.capability"] != ""
		}
	}
	if !capable {
		t.Error("a file has lost its owner or its capabilities")
	}
}
