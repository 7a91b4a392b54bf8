package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// perfdhcpResult has the needed figures of a report of perfdhcp.
type perfdhcpResult struct {
	Discovers, Offers, Requests, Acks int
}

// perfdhcp runs the relayed four-way exchange: from port 67 of the address of
// the interface, which is giaddr as well, to the server's address. MACs count
// up from 00:0c:01:02:03:04.
func (b *bench) perfdhcp(ctx context.Context, machines int, rate float64, length time.Duration) (perfdhcpResult, error) {
	out, err := b.clients.Run(ctx, "taskset", "-c", clientCPU, "env", b.programs.Env(), b.programs.Program("perfdhcp"),
		"-4", "-l", wire, "-g", "single", "-R", strconv.Itoa(machines), "-r", strconv.Itoa(int(rate)),
		"-p", fmt.Sprint(length.Seconds()), "-W", strconv.FormatInt(time.Second.Microseconds(), 10), serverAddress)
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
