package buildcache

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The archives in the part "containers".
const (
	pauseArchive = "pause.tar"
	helloArchive = "hello.tar"
	// bothArchive holds both images: a node imports one archive faster than two.
	bothArchive = "lab.tar"
)

// PauseImage returns a docker archive of localhost/pause:1, the image whose process
// holds the namespaces of a pod.
func PauseImage(ctx context.Context, log io.Writer) (archive string, err error) {
	return containerArchive(ctx, log, pauseArchive)
}

// HelloImage returns a docker archive of localhost/hello:1, which answers HTTP
// requests on port 8080 with its host name.
func HelloImage(ctx context.Context, log io.Writer) (archive string, err error) {
	return containerArchive(ctx, log, helloArchive)
}

func containerArchive(ctx context.Context, log io.Writer, name string) (string, error) {
	log = share(log)
	p, err := containers(ctx, log)
	if err != nil {
		return "", fmt.Errorf("containers: %w", err)
	}
	dir, err := p.path(ctx, log)
	return filepath.Join(dir, name), err
}

// containers returns the part with the archives of both images.
func containers(ctx context.Context, log io.Writer) (part, error) {
	root, err := SourceRoot()
	if err != nil {
		return part{}, err
	}
	// archive.go is an input as well: it decides the content of the archives.
	sources, err := hashFiles(root, "e2e/image/pause", "e2e/image/hello", "e2e/buildcache/archive.go")
	if err != nil {
		return part{}, err
	}
	toolchain, err := goOutput(ctx, root, "env", "GOVERSION", "GOARCH")
	if err != nil {
		return part{}, err
	}
	return part{kind: "containers", key: hashOf(sources, toolchain), make: func(ctx context.Context, dir string) error {
		return makeContainers(ctx, log, root, dir)
	}}, nil
}

func makeContainers(ctx context.Context, log io.Writer, root, dir string) error {
	var images []image
	for _, name := range []string{"pause", "hello"} {
		program := filepath.Join(dir, name)
		if err := compile(ctx, log, root, "./e2e/image/"+name, program); err != nil {
			return err
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		if err := os.Remove(program); err != nil {
			return err
		}
		images = append(images, image{name: "localhost/" + name + ":1", program: content})
	}
	for name, images := range map[string][]image{pauseArchive: images[:1], helloArchive: images[1:], bothArchive: images} {
		if err := createArchive(filepath.Join(dir, name), images); err != nil {
			return err
		}
	}
	return nil
}

func createArchive(path string, images []image) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeArchive(f, images...); err != nil {
		return err
	}
	return f.Close()
}
