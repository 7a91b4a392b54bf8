package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"time"

	"drover/e2e/bench/load"
)

// generatorCommand makes this program the load generator. The benchmark starts it in the
// clients' namespace, on the clients' processor.
const generatorCommand = "load"

// generate runs one load and prints the result.
func generate(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var l load.Load
	f := flag.NewFlagSet("bench-dhcp load", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.TextVar(&l.Server, "server", netip.Addr{}, "`address` of the server")
	f.TextVar(&l.Relay, "relay", netip.Addr{}, "own `address`, of a relay agent")
	f.Float64Var(&l.Rate, "rate", 1000, "exchanges begun per second")
	f.DurationVar(&l.Duration, "for", 4*time.Second, "how long")
	f.IntVar(&l.Machines, "machines", machines, "how many machines")
	f.DurationVar(&l.Retry, "retry", 0, "machines ask until they are served, each this often at most")
	f.BoolVar(&l.Boots, "boots", false, "machines are iPXE, and begin boots")
	f.BoolVar(&l.Again, "again", false, "machines that were served ask again")
	if err := f.Parse(args); err != nil {
		return err
	}
	result, err := load.Run(ctx, l)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(result)
}

// generate runs the generator against the running server.
func (b *bench) generate(ctx context.Context, st *Step, retry time.Duration) (r load.Result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	out, err := b.clients.Run(ctx, "taskset", "-c", clientCPU, self, generatorCommand, "-server", serverAddress,
		"-relay", relayAddress, "-rate", fmt.Sprint(st.Asked), "-for", st.length.String(), "-retry", retry.String(), "-machines", strconv.Itoa(st.machines),
		"-boots="+strconv.FormatBool(b.pages > 0), "-again="+strconv.FormatBool(b.pages > 0 || st.again))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("generator: %w in %q", err, out)
	}
	return r, nil
}
