package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover/e2e/lab"
)

// A server is a DHCP server to be measured.
type server struct {
	name string
	// command writes the config into an empty dir, which also gets the store and the
	// log, and returns the command of the server in the foreground.
	command func(p *programs, dir string) (*exec.Cmd, error)
	// machines is the number of machines that ask.
	machines int
}

var allServers = []server{
	{"drover", func(p *programs, dir string) (*exec.Cmd, error) { return droverCommand(p, dir, 0) }, machines},
	{"kea", func(p *programs, dir string) (*exec.Cmd, error) { return keaCommand(p, dir, false, 0) }, machines},
	{"kea-mt", func(p *programs, dir string) (*exec.Cmd, error) { return keaCommand(p, dir, true, 0) }, machines},
	{"dnsmasq", dnsmasqCommand, machines},
	// These know all machines that ask, by pools[].nodes or host reservations.
	{"drover" + declared, func(p *programs, dir string) (*exec.Cmd, error) { return droverCommand(p, dir, nodes) }, nodes},
	{"kea" + declared, func(p *programs, dir string) (*exec.Cmd, error) { return keaCommand(p, dir, false, nodes) }, nodes},
	// These serve DHCPv6.
	{"drover" + six, drover6Command, machines},
	{"kea" + six, func(p *programs, dir string) (*exec.Cmd, error) { return kea6Command(p, dir, false) }, machines},
	{"kea-mt" + six, func(p *programs, dir string) (*exec.Cmd, error) { return kea6Command(p, dir, true) }, machines},
}

// The suffixes of the names of servers that know their machines, and of those of DHCPv6.
const (
	declared = "-nodes"
	six      = "-6"
)

// group returns the suffix of a server's name. Each group has a table and limits of its own.
func (s server) group() string {
	for _, suffix := range []string{declared, six} {
		if strings.HasSuffix(s.name, suffix) {
			return suffix
		}
	}
	return ""
}

// chooseServers returns the servers of these names, or all without names: of DHCPv6, or the
// others.
func chooseServers(names string, ipv6 bool) (chosen []server, err error) {
	if names == "" {
		for _, s := range allServers {
			if (s.group() == six) == ipv6 {
				chosen = append(chosen, s)
			}
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		named := func(s server) bool { return s.name == name && (s.group() == six) == ipv6 }
		i := slices.IndexFunc(allServers, named)
		if i < 0 {
			return nil, fmt.Errorf("-only: no server %q (want drover, kea, kea-mt, dnsmasq, drover-nodes or kea-nodes; with -6: drover-6, kea-6 or kea-mt-6)", name)
		}
		if slices.ContainsFunc(chosen, named) {
			return nil, fmt.Errorf("-only: %q twice", name)
		}
		chosen = append(chosen, allServers[i])
	}
	return chosen, nil
}

// with runs f while a server runs, which begins with an empty store.
func (b *bench) with(ctx context.Context, s server, f func(*lab.Process) error) (err error) {
	dir := filepath.Join(b.dir, s.name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	cmd, err := s.command(b.programs, dir)
	if err != nil {
		return err
	}
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return err
	}
	defer output.Close()
	pinned := exec.Command("taskset", append([]string{"-c", serverCPU}, cmd.Args...)...)
	pinned.Env, pinned.Dir, pinned.Stdout, pinned.Stderr = cmd.Env, dir, output, output
	p, err := b.servers.Start(s.name, pinned)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(p)) }()
	if err := listening(ctx, p, b.six); err != nil {
		said, _ := os.ReadFile(output.Name())
		return fmt.Errorf("%s: %w\n%s", s.name, err, said)
	}
	return f(p)
}

// listening waits until the server has its port, and a moment more for the rest of its
// start.
func listening(ctx context.Context, p *lab.Process, ipv6 bool) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		if bound(p.Pid, ipv6) {
			break
		}
		select {
		case <-ctx.Done():
			return errors.New("does not listen on its port")
		case <-p.Done():
			return errors.New("ended")
		case <-tick.C:
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(500 * time.Millisecond):
		return nil
	}
}

// end stops a server. Kea and dnsmasq exit with a status other than 0 at the signal.
func end(p *lab.Process) error {
	var exit *exec.ExitError
	if err := p.Stop(10 * time.Second); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}
