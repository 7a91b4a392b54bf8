package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"drover/e2e/bench/kit"
	"drover/e2e/buildcache"
	"drover/e2e/lab"
)

// The wire: two namespaces with an Ethernet between them.
const (
	wire          = "wire0"
	serverAddress = "10.99.0.1"
	relayAddress  = "10.99.0.2"
	subnet        = "10.99.0.0/16"

	serverAddress6 = "fd00:99::1"
	relayAddress6  = "fd00:99::2"
	subnet6        = "fd00:99::/64"

	// machines is the number of machines that ask, and of addresses.
	machines                = 60000
	nodes                   = 10000 // of these machines, where they are declared
	firstLease              = "10.99.1.0"
	lastLease               = "10.99.235.95"
	firstLease6, lastLease6 = "fd00:99::1:0", "fd00:99::1:ea5f"
)

// The server has one processor, the load generator another.
const (
	serverCPU = "0"
	clientCPU = "1"
)

// bench has the data of a run.
type bench struct {
	options
	programs *programs
	servers  *lab.Rack
	clients  *lab.Rack
	dir      string // of the stores, logs and configs
	open     int    // pages of drover that are open in a step
	log      io.Writer
}

// openBench downloads the programs and makes the network.
func openBench(ctx context.Context, o options, log io.Writer) (_ *bench, err error) {
	b := &bench{options: o, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.programs, err = fetchPrograms(ctx, log); err != nil {
		return b, err
	}
	cache, err := buildcache.CacheDir()
	if err != nil {
		return b, err
	}
	// Not in /tmp, which may be RAM: then no write to a disk would be measured.
	b.dir = filepath.Join(cache, "bench-dhcp-run")
	if err := b.connect(ctx); err != nil {
		return b, err
	}
	b.programs.drover, b.programs.from, err = kit.FindDrover(ctx, b.dir, o.drover)
	return b, err
}

// connect makes the namespaces and the wire. While the first is open, another
// run cannot begin.
func (b *bench) connect(ctx context.Context) (err error) {
	if b.servers, err = lab.Open("drover-bench-servers", filepath.Join(b.dir, "servers")); err != nil {
		return err
	}
	if b.clients, err = lab.Open("drover-bench-clients", filepath.Join(b.dir, "clients")); err != nil {
		return err
	}
	if _, err := b.servers.Run(ctx, "ip", "link", "add", wire, "type", "veth", "peer", "name", wire, "netns", b.clients.Name); err != nil {
		return err
	}
	for rack, addresses := range map[*lab.Rack][2]string{b.servers: {serverAddress, serverAddress6}, b.clients: {relayAddress, relayAddress6}} {
		if _, err := rack.Run(ctx, "ip", "addr", "add", addresses[0]+"/16", "dev", wire); err != nil {
			return err
		}
		if b.six {
			if _, err := rack.Run(ctx, "ip", "addr", "add", addresses[1]+"/64", "dev", wire, "nodad"); err != nil {
				return err
			}
		}
		if _, err := rack.Run(ctx, "ip", "link", "set", wire, "up"); err != nil {
			return err
		}
	}
	return nil
}

// close ends all processes, and removes all files, unless -keep is set.
func (b *bench) close() error {
	var errs []error
	for _, r := range []*lab.Rack{b.clients, b.servers} {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	switch {
	case b.servers == nil: // the directory may be another run's
	case b.keepDir:
		b.say("configs, logs and lease files are in %s", b.dir)
	default:
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }
