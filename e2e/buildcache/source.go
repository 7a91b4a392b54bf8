package buildcache

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// jobs is the number of compilers and linkers at a time. Linking one program of
// Kubernetes takes close to 3 GB.
const jobs = "-p=2"

// kubernetesModule pins Kubernetes.
const kubernetesModule = "e2e/kubernetes"

// program is a package main of another project.
type program struct {
	file string // below the part's folder
	pkg  string
}

// goBuild compiles programs of a module of its own below e2e, whose go.mod and
// go.sum pin all sources.
type goBuild struct {
	module   string // its folder, relative to the root of the source tree
	tags     string
	programs []program
	// stamp returns the variables that the linker sets. The argument has the versions
	// of the modules in go.mod.
	stamp func(version map[string]string) ([]string, error)
	// overlay, if set, writes source files below temp, and returns the files of the
	// module that they replace. recipe is its version, for the key.
	overlay func(ctx context.Context, dir, temp string) (map[string]string, error)
	recipe  string
}

// goEnv returns the environment of every build, without the user's GOFLAGS: they would
// change the programs without changing the key.
func goEnv() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false")
}

// part returns the part with the programs.
func (b goBuild) part(ctx context.Context, kind string, log io.Writer) (part, error) {
	root, err := SourceRoot()
	if err != nil {
		return part{}, err
	}
	dir := filepath.Join(root, b.module)
	sums, err := hashFiles(dir, "go.mod", "go.sum")
	if err != nil {
		return part{}, err
	}
	toolchain, err := goOutput(ctx, dir, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return part{}, err
	}
	flags, err := b.flags(ctx, dir)
	if err != nil {
		return part{}, err
	}
	inputs := append([]string{sums, toolchain}, flags...)
	for _, p := range b.programs {
		inputs = append(inputs, p.file, p.pkg)
	}
	if b.recipe != "" {
		inputs = append(inputs, b.recipe)
	}
	return part{kind: kind, key: hashOf(inputs...), make: func(ctx context.Context, out string) error {
		flags, clean, err := b.overlaid(ctx, dir, flags)
		if err != nil {
			return err
		}
		defer clean()
		for _, p := range b.programs {
			args := append([]string{"build", jobs, "-o", filepath.Join(out, p.file)}, flags...)
			cmd := command(ctx, "go", append(args, p.pkg)...)
			cmd.Dir, cmd.Env = dir, goEnv()
			if err := timed(log, path.Base(p.file), func() error { return run(cmd, io.Discard) }); err != nil {
				return fmt.Errorf("%s: %w", p.file, err)
			}
		}
		return nil
	}}, nil
}

// overlaid adds the flag -overlay for the files of the overlay.
func (b goBuild) overlaid(ctx context.Context, dir string, flags []string) (_ []string, clean func(), err error) {
	if b.overlay == nil {
		return flags, func() {}, nil
	}
	temp, err := os.MkdirTemp("", "drover-overlay-")
	if err != nil {
		return nil, nil, err
	}
	clean = func() { _ = os.RemoveAll(temp) } // a leftover below /tmp does no harm
	files, err := b.overlay(ctx, dir, temp)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(map[string]any{"Replace": files}); err == nil {
			err = os.WriteFile(filepath.Join(temp, "overlay.json"), text, 0o600)
		}
	}
	if err != nil {
		clean()
		return nil, nil, err
	}
	return append(slices.Clone(flags), "-overlay", filepath.Join(temp, "overlay.json")), clean, nil
}

func (b goBuild) flags(ctx context.Context, dir string) ([]string, error) {
	version, err := required(ctx, dir)
	if err != nil {
		return nil, err
	}
	stamps, err := b.stamp(version)
	if err != nil {
		return nil, fmt.Errorf("%s/go.mod: %w", b.module, err)
	}
	ldflags := strings.Join(append([]string{"-s -w"}, stamps...), " -X ") // no symbols: the programs are in the node's RAM
	flags := []string{"-ldflags", ldflags}
	if b.tags != "" {
		flags = append(flags, "-tags", b.tags)
	}
	return flags, nil
}

// required returns the versions of the modules that a go.mod requires. Unlike "go list
// -m" it does not need the network.
func required(ctx context.Context, dir string) (map[string]string, error) {
	content, err := goOutput(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal([]byte(content), &mod); err != nil {
		return nil, fmt.Errorf("go mod edit: %w", err)
	}
	version := map[string]string{}
	for _, r := range mod.Require {
		version[r.Path] = r.Version
	}
	return version, nil
}

func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := command(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, goEnv()
	return output(cmd)
}

// Kubernetes builds the programs of a control plane and of a node: etcd,
// kube-apiserver, kube-controller-manager, kubeadm, kubectl and kubelet. It
// returns their folder. The first time takes ten minutes on two cores.
func Kubernetes(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "kubernetes", kubernetes)
}

func kubernetes(ctx context.Context, log io.Writer) (part, error) {
	// The two slowest come first: all others share most of their packages.
	b := goBuild{module: kubernetesModule, stamp: kubernetesStamp}
	b.programs = append(b.programs, program{"etcd", "go.etcd.io/etcd/server/v3"})
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kubeadm", "kubectl", "kubelet"} {
		b.programs = append(b.programs, program{name, "k8s.io/kubernetes/cmd/" + name})
	}
	return b.part(ctx, "kubernetes", log)
}

// kubernetesStamp returns the variables with the version of the programs. Without it they
// report v0.0.0, which kubeadm refuses. Date and commit are constants, so that equal
// sources give equal programs.
func kubernetesStamp(version map[string]string) ([]string, error) {
	const module = "k8s.io/kubernetes"
	v := version[module]
	numbers := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
	if len(numbers) != 3 {
		return nil, fmt.Errorf("%s: %q is not a version", module, v)
	}
	var stamps []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, s := range []string{
			"gitVersion=" + v, "gitMajor=" + numbers[0], "gitMinor=" + numbers[1], "gitTreeState=clean",
			"gitCommit=" + strings.Repeat("0", 40), "buildDate=2026-01-01T00:00:00Z",
		} {
			stamps = append(stamps, pkg+"."+s)
		}
	}
	return stamps, nil
}

// Containerd builds the container runtime of a node: containerd, its shim for
// runc, ctr, and below cni/ the plugins for a bridge network. It returns their
// folder. The first time takes two minutes on two cores.
func Containerd(ctx context.Context, log io.Writer) (dir string, err error) {
	return pathOf(ctx, log, "containerd", containerd)
}

func containerd(ctx context.Context, log io.Writer) (part, error) {
	const (
		ctrd = "github.com/containerd/containerd/v2/"
		cni  = "github.com/containernetworking/plugins/"
	)
	b := goBuild{
		module: "e2e/containerd",
		tags:   "no_btrfs,no_devmapper,no_zfs,urfave_cli_no_docs", // no use for them in RAM
		stamp: func(version map[string]string) ([]string, error) {
			return []string{
				ctrd + "version.Version=" + version[strings.TrimSuffix(ctrd, "/")],
				cni + "pkg/utils/buildversion.BuildVersion=" + version[strings.TrimSuffix(cni, "/")],
			}, nil
		},
		programs: []program{
			{"containerd", ctrd + "cmd/containerd"},
			{"containerd-shim-runc-v2", ctrd + "cmd/containerd-shim-runc-v2"},
			{"ctr", ctrd + "cmd/ctr"},
			{"cni/bridge", cni + "plugins/main/bridge"},
			{"cni/host-local", cni + "plugins/ipam/host-local"},
			{"cni/loopback", cni + "plugins/main/loopback"},
			{"cni/portmap", cni + "plugins/meta/portmap"},
		},
	}
	return b.part(ctx, "containerd", log)
}

// compile builds a program of drover's own module, static and small.
func compile(ctx context.Context, log io.Writer, root, pkg, file string) error {
	cmd := command(ctx, "go", "build", "-ldflags", "-s -w", "-o", file, pkg)
	cmd.Dir, cmd.Env = root, goEnv()
	if err := timed(log, path.Base(file), func() error { return run(cmd, io.Discard) }); err != nil {
		return fmt.Errorf("%s: %w", pkg, err)
	}
	return nil
}
