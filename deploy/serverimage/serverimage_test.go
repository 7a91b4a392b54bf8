package serverimage_test

import (
	"archive/tar"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"drover/deploy/serverimage"
	"drover/e2e/fixture"
)

// entry is a file of an archive.
type entry struct {
	tar.Header
	content []byte
}

// read returns the files of an archive by name.
func read(t *testing.T, archive []byte) map[string]entry {
	t.Helper()
	files := map[string]entry{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(h.Name, "/")] = entry{*h, content}
	}
}

// document is a manifest, an index or a config, as far as the test needs it.
type document struct {
	Manifests []struct {
		Digest      string
		Platform    struct{ Architecture, OS string }
		Annotations map[string]string
	}
	Config       json.RawMessage
	Layers       []struct{ Digest string }
	Architecture string
}

// blob returns a blob of an archive.
func blob(files map[string]entry, digest string) []byte {
	return files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")].content
}

func decode(t *testing.T, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

// write writes an image of a program and checks that a second one is the same.
func write(t *testing.T, c serverimage.Config) map[string]entry {
	t.Helper()
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := serverimage.Write(b, c); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the second archive differs from the first")
	}
	return read(t, first.Bytes())
}

// TestServerImage: the program has its two capabilities and no others, the user is not
// root, and images and loaders are there without the locks of their tools.
func TestServerImage(t *testing.T) {
	src := fixture.Tree(t, map[string]string{
		"drover": "the program", "images/.lock": "", "images/debian-12/aaa/root.squashfs": "a root",
		"images/debian-12/current": "->aaa", "images/.cache/x": "", "loaders/undionly.kpxe": "a loader",
		"roots.pem": "authorities", "notices": "licences",
	})
	files := write(t, serverimage.Config{
		Name: "localhost/drover:0.1.0", Programs: map[string]string{"amd64": src + "/drover"}, Images: src + "/images", Loaders: src + "/loaders",
		Authorities: src + "/roots.pem", Notices: src + "/notices",
	})
	var index, manifest document
	decode(t, files["index.json"].content, &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations["io.containerd.image.name"] != "localhost/drover:0.1.0" {
		t.Fatalf("got index %s", files["index.json"].content)
	}
	decode(t, blob(files, index.Manifests[0].Digest), &manifest)
	var ref struct{ Digest string }
	decode(t, manifest.Config, &ref)
	var config struct {
		Config struct {
			User            string
			Entrypoint, Cmd []string
		}
	}
	decode(t, blob(files, ref.Digest), &config)
	if got, want := fmt.Sprint(config.Config), "{65532:65532 [/usr/bin/drover] [serve]}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	all := map[string]entry{}
	for _, l := range manifest.Layers {
		maps.Copy(all, read(t, blob(files, l.Digest)))
	}
	// magic 0x02000001; 1<<10 and 1<<13, little-endian.
	const capabilities = "0100000200240000000000000000000000000000"
	program := all["usr/bin/drover"]
	if got := hex.EncodeToString([]byte(program.PAXRecords["SCHILY.xattr.security.capability"])); got != capabilities || program.Mode != 0o755 {
		t.Errorf("got capabilities %s and mode %o, want %s and 755", got, program.Mode, capabilities)
	}
	for name, want := range map[string]string{"etc/ssl/certs/ca-certificates.crt": "authorities", "usr/share/doc/drover/third-party-notices": "licences"} {
		if f := all[name]; string(f.content) != want || f.Mode != 0o644 {
			t.Errorf("%s: got %q, mode %o", name, f.content, f.Mode)
		}
	}
	if d := all["var/lib/drover"]; d.Uid != 65532 || d.Mode != 0o700 {
		t.Errorf("the state belongs to %d, mode %o", d.Uid, d.Mode)
	}
	var extra []string
	for name := range all {
		if strings.HasPrefix(name, "usr/share/drover/") {
			extra = append(extra, name+all[name].Linkname)
		}
	}
	slices.Sort(extra)
	want := []string{
		"usr/share/drover/images", "usr/share/drover/images/debian-12", "usr/share/drover/images/debian-12/aaa",
		"usr/share/drover/images/debian-12/aaa/root.squashfs", "usr/share/drover/images/debian-12/currentaaa",
		"usr/share/drover/loaders", "usr/share/drover/loaders/undionly.kpxe",
	}
	if !slices.Equal(extra, want) {
		t.Errorf("got %q, want %q", extra, want)
	}
}

// TestArchitectures: an image of two architectures is an index of both.
func TestArchitectures(t *testing.T) {
	src := fixture.Tree(t, map[string]string{"amd64": "a program", "arm64": "another"})
	files := write(t, serverimage.Config{Name: "localhost/drover:0.1.0", Programs: map[string]string{"arm64": src + "/arm64", "amd64": src + "/amd64"}})
	var index, both document
	decode(t, files["index.json"].content, &index)
	decode(t, blob(files, index.Manifests[0].Digest), &both)
	var got []string
	for _, m := range both.Manifests {
		var manifest document
		decode(t, blob(files, m.Digest), &manifest)
		layer := read(t, blob(files, manifest.Layers[0].Digest))
		got = append(got, m.Platform.OS+"/"+m.Platform.Architecture+": "+string(layer["usr/bin/drover"].content))
	}
	if want := []string{"linux/amd64: a program", "linux/arm64: another"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRefused(t *testing.T) {
	src := fixture.Tree(t, map[string]string{"drover": ""})
	for _, c := range []serverimage.Config{
		{Name: "drover", Programs: map[string]string{"amd64": src + "/drover"}},
		{Name: "localhost/drover:0.1.0"},
		{Name: "localhost/drover:0.1.0", Programs: map[string]string{"amd64": src + "/missing"}},
		{Name: "localhost/drover:0.1.0", Programs: map[string]string{"amd64": src + "/drover"}, Images: src + "/missing"},
		{Name: "localhost/drover:0.1.0", Programs: map[string]string{"amd64": src + "/drover"}, Authorities: src + "/missing"},
	} {
		if err := serverimage.Write(io.Discard, c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}
