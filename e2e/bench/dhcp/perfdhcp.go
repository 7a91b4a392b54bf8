package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// perfdhcpResult has the needed figures of a report of perfdhcp.
type perfdhcpResult struct {
	Discovers, Offers, Requests, Acks int
}

// perfdhcp runs the relayed four-way exchange: from port 67 of the address of
// the interface, which is giaddr as well, to the server's address. MACs count
// up from 00:0c:01:02:03:04. With -6 it relays too, from port 547: without a relay agent
// all machines would have one link-local address and one card, and be one machine. The MACs
// are in the DUIDs.
func (b *bench) perfdhcp(ctx context.Context, machines int, rate float64, length time.Duration) (perfdhcpResult, error) {
	from, to := []string{"-4", "-l", wire}, serverAddress
	if b.six {
		from, to = []string{"-6", "-A", "1", "-l", relayAddress6, "-L", "547", "-N", "547"}, serverAddress6
	}
	args := slices.Concat([]string{"-c", clientCPU, "env", b.programs.Env(), b.programs.Program("perfdhcp")}, from, []string{
		"-g", "single", "-R", strconv.Itoa(machines), "-r", strconv.Itoa(int(rate)),
		"-p", fmt.Sprint(length.Seconds()), "-W", strconv.FormatInt(time.Second.Microseconds(), 10), to,
	})
	out, err := b.clients.Run(ctx, "taskset", args...)
	const incomplete = 3 // the exit code when an answer is missing
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != incomplete) {
		return perfdhcpResult{}, err
	}
	r, err := parsePerfdhcp(string(out))
	if err != nil {
		return r, fmt.Errorf("perfdhcp: %w in:\n%s", err, out)
	}
	return r, nil
}

var perfdhcpCount = regexp.MustCompile(`(?m)^(sent|received) packets: (\d+)$`)

// parsePerfdhcp reads a report: sent and received of DISCOVER-OFFER, then of
// REQUEST-ACK.
func parsePerfdhcp(out string) (r perfdhcpResult, err error) {
	found := perfdhcpCount.FindAllStringSubmatch(out, -1)
	into := []*int{&r.Discovers, &r.Offers, &r.Requests, &r.Acks}
	if len(found) != len(into) {
		return r, errors.New("no report of two exchanges")
	}
	for i, f := range found {
		if *into[i], err = strconv.Atoi(f[2]); err != nil {
			return r, err
		}
	}
	return r, nil
}
