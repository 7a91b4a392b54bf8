package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"drover/e2e/lab"
)

// stage is the server of a run, with its network. This process is in the network
// namespace of the machines.
type stage struct {
	options
	rack   *lab.Rack // the server's namespace
	wire   *wire     // nil: a veth pair
	server *lab.Drover
	log    io.Writer
}

// The names of both ends of the wire.
const (
	machinesEnd = "wire0"
	serverEnd   = "swarm0"
)

func openStage(ctx context.Context, o options, log io.Writer) (s *stage, err error) {
	s = &stage{options: o, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.rack, err = lab.Open(o.name, filepath.Join(o.inside, "rack"), serverNet); err != nil {
		return s, err
	}
	if err := s.connect(ctx); err != nil {
		return s, err
	}
	return s, s.startServer(ctx)
}

// connect connects both namespaces. A machine's address is one of this host by a route of type
// local: 60 000 of them cost nothing.
func (s *stage) connect(ctx context.Context) (err error) {
	if s.loss > 0 || s.delay > 0 {
		if s.wire, err = openWire(s.rack, s.loss, s.delay); err != nil {
			return err
		}
	} else if err := ip("link", "add", machinesEnd, "type", "veth", "peer", "name", serverEnd, "netns", s.rack.Name); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", routerAddr.String() + "/24", "dev", machinesEnd},
		{"link", "set", machinesEnd, "up"},
		{"route", "add", "local", machinesNet.String(), "dev", "lo"},
	} {
		if err := ip(args...); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"link", "set", serverEnd, "master", lab.Bridge, "up"},
		{"route", "add", machinesNet.String(), "via", routerAddr.String()},
	} {
		if _, err := s.rack.Run(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

// ip runs iproute2 on the namespace of the machines.
func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (s *stage) startServer(ctx context.Context) error {
	d := &lab.Drover{
		Binary: s.drover, Config: filepath.Join(s.inside, "drover.yaml"), State: filepath.Join(s.inside, "state"),
		Images: filepath.Join(s.inside, "images"), Loaders: filepath.Join(s.inside, "loaders"), API: apiAddr,
	}
	if err := errors.Join(os.MkdirAll(d.State, 0o700), os.MkdirAll(d.Loaders, 0o755), writeImage(d.Images, int64(s.root)<<20)); err != nil {
		return err
	}
	for _, name := range []string{"undionly.kpxe", "snponly.efi"} {
		if err := os.WriteFile(filepath.Join(d.Loaders, name), make([]byte, loaderSize), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(d.Config, []byte(s.config()), 0o600); err != nil {
		return err
	}
	if err := s.rack.StartDrover(ctx, d); err != nil {
		return err
	}
	s.server = d
	return nil
}

// config returns the config of the server.
func (s *stage) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, "server: {interfaces: [%s], address: %s, api: %q}\n", lab.Bridge, serverAddr, apiAddr)
	fmt.Fprintf(&b, "subnets: [{cidr: %s, lease: 1h}, {cidr: %s, router: %s, lease: 1h}]\n", serverNet.Masked(), machinesNet, relayAddr(0))
	b.WriteString("tags: {all: {files: {/etc/secret: {content: \"of the tenant\\n\"}}}}\npools:\n")
	fmt.Fprintf(&b, "  - {name: lobby, catchall: true, image: %s, range: %s-10.29.255.250}\n", imageName, firstDynamic.Next())
	fmt.Fprintf(&b, "  - name: swarm\n    image: %s\n    nodes:\n", imageName)
	for i := range s.machines + s.mad {
		if s.declared(i) {
			fmt.Fprintf(&b, "      - {name: n%d, macs: [%q], ip: %s}\n", i, machineMAC(i), declaredAddr(i))
		}
	}
	return b.String()
}

// declared reports whether the config declares a machine: the last ones of each kind it does not.
func (o *options) declared(i int) bool {
	return i < o.machines-o.undeclared || i >= o.machines
}

func (s *stage) close() error {
	var errs []error
	if s.server != nil {
		errs = append(errs, s.server.Stop())
	}
	if s.wire != nil {
		s.wire.close()
	}
	if s.rack != nil {
		errs = append(errs, s.rack.Close())
	}
	return errors.Join(errs...)
}
