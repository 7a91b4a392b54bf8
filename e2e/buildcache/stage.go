package buildcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Stage is a container of a stage of Dockerfile.image that does not run.
type Stage struct {
	Root string   // its root file system, mounted
	Args []string // what an engine runs in it: entrypoint and command
	Env  []string

	store     *buildah
	container string
}

// NewAppliance builds the last stage of Dockerfile.image: with the programs of a directory,
// and with a tree in place of the node image, which would take a quarter of an hour.
func NewAppliance(ctx context.Context, log io.Writer, programs, tree string) (*Stage, error) {
	recipe, err := readRecipe()
	if err != nil {
		return nil, err
	}
	if recipe, err = withTree(recipe); err != nil {
		return nil, err
	}
	return newStage(ctx, log, "appliance", recipe, "--build-context", "drover="+programs, "--build-context", "tree="+tree)
}

// NewModules builds the stage of Dockerfile.image that has the kernel in /kernel, with the
// modules that DKMS makes of a package of Debian.
func NewModules(ctx context.Context, log io.Writer, dkms string) (*Stage, error) {
	recipe, err := readRecipe()
	if err != nil {
		return nil, err
	}
	return newStage(ctx, log, "modules", recipe, "--build-arg", "DKMS="+dkms)
}

func readRecipe() (string, error) {
	root, err := SourceRoot()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(root, dockerfile))
	return string(content), err
}

// newStage builds a stage of a Dockerfile on Debian 12, and mounts a container of it.
func newStage(ctx context.Context, log io.Writer, name, recipe string, args ...string) (*Stage, error) {
	log = share(log)
	work, err := os.MkdirTemp("", "drover-"+name+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(work, "Dockerfile")
	if err := os.WriteFile(file, []byte(recipe), 0o600); err != nil {
		return nil, err
	}
	tar, err := Base(ctx, log)
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	b, err := openStore(ctx, filepath.Join(cache, "buildah-stages"), &stepWriter{log: log})
	if err != nil {
		return nil, err
	}
	base := "localhost/base:" + debian12.base(log).key
	if err := b.importBase(ctx, tar, base); err != nil {
		return nil, err
	}
	args = append([]string{
		"--target", name, "--isolation", "chroot", "--pull=never", "--layers",
		"--build-arg", "BASE=" + base, "--build-arg", "K8S_SOURCE=local", "--tag", "localhost/" + name, "--file", file,
	}, args...)
	if err := b.run(ctx, "bud", append(args, work)...); err != nil {
		return nil, err
	}
	return b.mount(ctx, "localhost/"+name)
}

// withTree returns Dockerfile.image with a stage node that is the build context "tree".
func withTree(recipe string) (string, error) {
	before, rest, ok := strings.Cut(recipe, "\n# --- What operators")
	_, after, ok2 := strings.Cut(rest, "\n# --- The appliance")
	if !ok || !ok2 {
		return "", fmt.Errorf("%s: the stages that node is made of are not where they were", dockerfile)
	}
	return before + "\nFROM scratch AS node\nCOPY --from=tree / /\n\n# --- The appliance" + after, nil
}

// mount mounts a container of an image.
func (b *buildah) mount(ctx context.Context, name string) (s *Stage, err error) {
	s = &Stage{store: b}
	text, err := output(b.command(ctx, "inspect", "--type", "image", name))
	if err != nil {
		return nil, err
	}
	var image struct {
		OCIv1 struct {
			Config struct{ Entrypoint, Cmd, Env []string }
		}
	}
	if err := json.Unmarshal([]byte(text), &image); err != nil {
		return nil, fmt.Errorf("config of %s: %w", name, err)
	}
	config := image.OCIv1.Config
	s.Args, s.Env = append(config.Entrypoint, config.Cmd...), config.Env
	if s.container, err = output(b.command(ctx, "from", "--signature-policy", b.policy(), "--pull-never", name)); err != nil {
		return nil, err
	}
	if s.Root, err = output(b.command(ctx, "mount", s.container)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close removes the container.
func (s *Stage) Close() error {
	_, err := output(s.store.command(context.Background(), "rm", s.container)) // it unmounts it, too
	return err
}
