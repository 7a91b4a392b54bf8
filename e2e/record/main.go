package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"drover/e2e/buildcache"
	"drover/e2e/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "record: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "dhcp/testdata/recorded", "the folder that the recordings go to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root, to make a network namespace")
	}
	if err := buildcache.Able(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(ipconfig); err != nil {
		return fmt.Errorf("%w (please run: apt-get install klibc-utils)", err)
	}
	for _, c := range chosen {
		began := time.Now()
		r, err := record(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if err := os.WriteFile(filepath.Join(*out, c.name+".hex"), r.text(), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "%-18s %5.1f s, %d messages\n", c.name, time.Since(began).Seconds(), len(r.messages))
	}
	return nil
}

// choose returns the clients of these names; all when there are none.
func choose(names []string) ([]client, error) {
	if len(names) == 0 {
		return clients, nil
	}
	var chosen []client
	for _, name := range names {
		i := slices.IndexFunc(clients, func(c client) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no client %q: want one of %s", name, strings.Join(clientNames(), ", "))
		}
		chosen = append(chosen, clients[i])
	}
	return chosen, nil
}

// patience is how long a client may take: emulated UEFI for arm64 needs half a
// minute on an idle machine.
const patience = 3 * time.Minute

// record runs one client until it has sent its DISCOVER and REQUEST.
func record(ctx context.Context, c client) (_ recording, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dir, err := os.MkdirTemp("", "drover-record-")
	if err != nil {
		return recording{}, err
	}
	defer func() {
		if err == nil {
			os.RemoveAll(dir)
			return
		}
		err = fmt.Errorf("%w; what was said is in %s", err, dir)
	}()
	rack, err := lab.Open("drover-record", dir, netip.MustParsePrefix(server+"/16"))
	if err != nil {
		return recording{}, err
	}
	defer func() { err = errors.Join(err, rack.Close()) }()
	version, err := version(ctx, c.packages)
	if err != nil {
		return recording{}, err
	}
	wire, err := rack.Capture(ctx, filepath.Join(dir, "wire.pcap"))
	if err != nil {
		return recording{}, err
	}
	if err := serve(ctx, rack, c); err != nil {
		return recording{}, err
	}
	how, err := c.start(ctx, rack, c)
	if err != nil {
		return recording{}, err
	}
	messages, err := await(ctx, wire.File, c.wanted)
	return recording{client: c.title, version: version, how: how, messages: messages}, err
}
