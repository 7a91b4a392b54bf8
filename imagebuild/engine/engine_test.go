package engine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/imagebuild/engine"
)

// fakeEngine is a program that says how it was called, and writes what a build writes.
const fakeEngine = `#!/bin/sh
echo "$(basename "$0") $*"
while [ $# -gt 0 ]; do
	case $1 in
	--iidfile) echo sha256:1234 >"$2" ;;
	--output) echo image >"$2" ;;
	fail=*) echo "the engine's own words" >&2; exit 3 ;;
	esac
	shift
done
`

// install puts fake engines into a PATH of their own.
func install(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fakeEngine), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tools := t.TempDir()
	for _, tool := range []string{"/bin/sh", "/usr/bin/basename"} {
		if err := os.Symlink(tool, filepath.Join(tools, filepath.Base(tool))); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+tools)
}

func dockerfile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "Dockerfile.image")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestEngines: the first engine that is installed builds, and saves in its own form.
func TestEngines(t *testing.T) {
	file := dockerfile(t, "ARG BASE\nFROM ${BASE} AS base\nFROM --platform=linux/amd64 base as Node\nFROM base AS appliance\n")
	for _, test := range []struct{ installed, source, save string }{
		{"buildah podman docker", "oci:", "buildah push --quiet sha256:1234 oci:"},
		{"podman docker", "oci-archive:", "podman save --quiet --format oci-archive --output "},
		{"docker", "docker-archive:", "docker save --output "},
	} {
		install(t, strings.Fields(test.installed)...)
		var out bytes.Buffer
		dir := t.TempDir()
		r := engine.Recipe{File: file, Args: []string{"BASE=debian:13"}, Contexts: []string{"k8sbin=bin"}, Platform: "linux/amd64", Output: &out}
		source, err := r.Build(t.Context(), dir)
		if err != nil || source != test.source+filepath.Join(dir, "image") {
			t.Errorf("%s: source is %q, %v", test.installed, source, err)
		}
		first := strings.Fields(test.installed)[0]
		for _, want := range []string{first + " b", " --file " + file, " --target Node ", " --platform linux/amd64 ", " --build-arg BASE=debian:13 ",
			" --build-context k8sbin=bin " + filepath.Dir(file) + "\n", test.save + map[bool]string{true: filepath.Join(dir, "image")}[first != "buildah"]} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", test.installed, want, out.String())
			}
		}
	}
}

func TestEngineFails(t *testing.T) {
	file := dockerfile(t, "FROM scratch\n")
	for name, test := range map[string]struct {
		installed string
		recipe    engine.Recipe
		want      string
	}{
		"none":     {"", engine.Recipe{File: file}, "install buildah, podman or docker"},
		"fails":    {"podman", engine.Recipe{File: file, Args: []string{"fail=1"}}, "podman build: exit status 3"},
		"no file":  {"podman", engine.Recipe{File: file + ".none"}, "no such file"},
		"dir":      {"podman", engine.Recipe{File: filepath.Dir(file)}, "is not a Dockerfile"},
		"argument": {"podman", engine.Recipe{File: file, Args: []string{"X"}}, `build argument "X"`},
		"context":  {"podman", engine.Recipe{File: file, Contexts: []string{"x="}}, `build context "x="`},
	} {
		t.Run(name, func(t *testing.T) {
			install(t, strings.Fields(test.installed)...)
			var out bytes.Buffer
			test.recipe.Output = &out
			_, err := test.recipe.Build(t.Context(), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			if strings.Contains(out.String(), "--target") {
				t.Errorf("a stage was chosen:\n%s", out.String())
			}
		})
	}
}
