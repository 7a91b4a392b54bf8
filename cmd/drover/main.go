// Command drover is the netboot server and the tool to work with it. Run
// "drover help" for its subcommands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. A second
// one then ends the program at once, as it does without a handler.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-first:
		case <-ctx.Done():
		}
		signal.Stop(first) // before the context ends: whoever sees that may send the second one
		cancel()
	}()
	return ctx, cancel
}
