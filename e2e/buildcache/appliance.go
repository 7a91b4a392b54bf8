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

const applianceName = "localhost/appliance"

// Appliance is a container of the last stage of Dockerfile.image that does not run.
type Appliance struct {
	Root string   // its root file system, mounted
	Args []string // what an engine runs in it: entrypoint and command
	Env  []string

	store     *buildah
	container string
}

// NewAppliance builds the last stage of Dockerfile.image: with the programs of a directory,
// and with a tree in place of the node image, which would take a quarter of an hour.
func NewAppliance(ctx context.Context, log io.Writer, programs, tree string) (*Appliance, error) {
	log = share(log)
	root, err := SourceRoot()
	if err != nil {
		return nil, err
	}
	recipe, err := os.ReadFile(filepath.Join(root, dockerfile))
	if err != nil {
		return nil, err
	}
	text, err := withTree(string(recipe))
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "drover-appliance-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(work, "Dockerfile")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
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
	if err := b.run(ctx, "bud", "--target", "appliance", "--isolation", "chroot", "--pull=never", "--layers",
		"--build-arg", "BASE="+base, "--build-arg", "K8S_SOURCE=local", "--build-context", "drover="+programs, "--build-context", "tree="+tree,
		"--tag", applianceName, "--file", file, work); err != nil {
		return nil, err
	}
	return b.container(ctx)
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

// container mounts a container of the appliance.
func (b *buildah) container(ctx context.Context) (a *Appliance, err error) {
	a = &Appliance{store: b}
	text, err := output(b.command(ctx, "inspect", "--type", "image", applianceName))
	if err != nil {
		return nil, err
	}
	var image struct {
		OCIv1 struct {
			Config struct{ Entrypoint, Cmd, Env []string }
		}
	}
	if err := json.Unmarshal([]byte(text), &image); err != nil {
		return nil, fmt.Errorf("config of the appliance: %w", err)
	}
	config := image.OCIv1.Config
	a.Args, a.Env = append(config.Entrypoint, config.Cmd...), config.Env
	if a.container, err = output(b.command(ctx, "from", "--signature-policy", b.policy(), "--pull-never", applianceName)); err != nil {
		return nil, err
	}
	if a.Root, err = output(b.command(ctx, "mount", a.container)); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Close removes the container.
func (a *Appliance) Close() error {
	_, err := output(a.store.command(context.Background(), "rm", a.container)) // it unmounts it, too
	return err
}
