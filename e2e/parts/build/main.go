// Build makes parts of the virtual rack, as package parts describes them. It
// prints the path of each on standard output, and what it does on standard error.
//
//	go run ./e2e/parts/build [kubernetes|containerd|base|pause|hello|image|network]...
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"drover/e2e/parts"
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
		"kubernetes": parts.Kubernetes,
		"containerd": parts.Containerd,
		"base":       parts.Base,
		"pause":      parts.PauseImage,
		"hello":      parts.HelloImage,
		"image":      parts.NodeImage,
		"network":    parts.Network,
	}
	if len(args) == 0 {
		args = []string{"kubernetes", "image", "network"} // the image needs all the others
	}
	for _, name := range args {
		if builders[name] == nil {
			return fmt.Errorf("no part %q: want kubernetes, containerd, base, pause, hello, image or network", name)
		}
	}
	if err := parts.Able(ctx); err != nil {
		return err
	}
	for _, name := range args {
		path, err := builders[name](ctx, stderr)
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, path)
	}
	return nil
}
