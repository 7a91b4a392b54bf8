// Build makes parts of the virtual rack, two at a time; package buildcache describes them. It
// prints the path of each to standard output, and its progress to standard error.
//
//	go run ./e2e/buildcache/build [PART]...
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"drover/e2e/buildcache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	builders := map[string]func(context.Context, io.Writer) (string, error){
		"kubernetes": buildcache.Kubernetes,
		"before":     before,
		"containerd": buildcache.Containerd,
		"base":       buildcache.Base,
		"pause":      buildcache.PauseImage,
		"hello":      buildcache.HelloImage,
		"image":      buildcache.NodeImage,
		"image13":    buildcache.NodeImage13,
		"preloaded":  buildcache.PreloadedImage,
		"network":    buildcache.Network,
		"helm":       buildcache.Helm,
		"dex":        buildcache.Dex,
		"hosted":     buildcache.ControlPlaneImages,
		"addons":     buildcache.AddOnImages,
		"webhook":    buildcache.WebhookImage,
		"debian12":   buildcache.Debian12,
		"debian13":   buildcache.Debian13,
		"checkers":   buildcache.Checkers,
		"arm64": func(ctx context.Context, log io.Writer) (string, error) {
			a, err := buildcache.NewArm64(ctx, log)
			return a.Root, err
		},
	}
	if len(args) == 0 {
		args = []string{"kubernetes", "image", "network"} // the image needs all the others
	}
	for _, name := range args {
		if builders[name] == nil {
			return fmt.Errorf("no part %q: want one of %s", name, strings.Join(slices.Sorted(maps.Keys(builders)), ", "))
		}
	}
	group := "image" // an image alone needs few programs
	for _, name := range args {
		if name != "image" && name != "image13" {
			group = ""
		}
	}
	if err := buildcache.Able(ctx, group); err != nil {
		return err
	}
	paths := make([]string, len(args))
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(atOnce)
	for i, name := range args {
		parts.Go(func() (err error) {
			paths[i], err = builders[name](ctx, stderr)
			return err
		})
	}
	if err := parts.Wait(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, strings.Join(paths, "\n"))
	return err
}

// atOnce is the number of parts that are made at a time: while one compiles, another downloads.
const atOnce = 2

// before builds the version of Kubernetes that control planes are updated from.
func before(ctx context.Context, log io.Writer) (string, error) {
	dir, _, err := buildcache.KubernetesBefore(ctx, log)
	return dir, err
}
