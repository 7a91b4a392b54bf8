package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
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
	spaces  []*lab.Rack // the namespace of each server, on one wire
	wire    *wire       // nil: a veth pair
	drovers []*lab.Drover
	log     io.Writer
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
	for i := range o.servers {
		name, net := o.name, netip.PrefixFrom(serverAddr(i), 24)
		if i > 0 {
			name += "-2"
		}
		rack, err := lab.Open(name, filepath.Join(o.inside, fmt.Sprintf("rack%d", i)), net)
		if err != nil {
			return s, err
		}
		s.spaces = append(s.spaces, rack)
	}
	if err := s.connect(ctx); err != nil {
		return s, err
	}
	for i := range s.spaces {
		if err := s.startServer(ctx, i); err != nil {
			return s, err
		}
	}
	return s, s.shareKey(ctx)
}

// connect connects both namespaces. A machine's address is one of this host by a route of type
// local: 60 000 of them cost nothing.
func (s *stage) connect(ctx context.Context) (err error) {
	if s.loss > 0 || s.delay > 0 {
		if s.wire, err = openWire(s.spaces[0], s.loss, s.delay); err != nil {
			return err
		}
	} else if err := ip("link", "add", machinesEnd, "type", "veth", "peer", "name", serverEnd, "netns", s.spaces[0].Name); err != nil {
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
	if _, err := s.spaces[0].Run(ctx, "ip", "link", "set", serverEnd, "master", lab.Bridge, "up"); err != nil {
		return err
	}
	for i, rack := range s.spaces {
		steps := [][]string{{"route", "add", machinesNet.String(), "via", routerAddr.String()}}
		if i > 0 {
			steps = append([][]string{
				{"link", "set", lab.Bridge, "address", "52:54:00:77:fe:01"}, // all racks have one MAC
				{"link", "add", "first", "type", "veth", "peer", "name", "second", "netns", s.spaces[0].Name},
				{"link", "set", "first", "master", lab.Bridge, "up"},
			}, steps...)
		}
		for _, args := range steps {
			if _, err := rack.Run(ctx, "ip", args...); err != nil {
				return err
			}
		}
	}
	if len(s.spaces) > 1 {
		_, err = s.spaces[0].Run(ctx, "ip", "link", "set", "second", "master", lab.Bridge, "up")
	}
	return err
}

// ip runs iproute2 on the namespace of the machines.
func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (s *stage) startServer(ctx context.Context, i int) error {
	dir := filepath.Join(s.inside, fmt.Sprintf("server%d", i))
	d := &lab.Drover{
		Binary: s.drover, Config: filepath.Join(dir, "drover.yaml"), State: filepath.Join(dir, "state"),
		Images: filepath.Join(s.inside, "images"), Loaders: filepath.Join(s.inside, "loaders"), API: apiAddr,
	}
	if err := errors.Join(os.MkdirAll(d.State, 0o700), os.MkdirAll(d.Loaders, 0o755)); err != nil {
		return err
	}
	if i == 0 {
		if err := writeImage(d.Images, int64(s.root)<<20); err != nil {
			return err
		}
	}
	for _, name := range []string{"undionly.kpxe", "snponly.efi"} {
		if err := os.WriteFile(filepath.Join(d.Loaders, name), make([]byte, loaderSize), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(d.Config, []byte(s.config(i)), 0o600); err != nil {
		return err
	}
	if err := s.spaces[i].StartDrover(ctx, d); err != nil {
		return err
	}
	s.drovers = append(s.drovers, d)
	return nil
}

// shareKey gives all servers the key of the first one, as docs/two-servers.md has it.
func (s *stage) shareKey(ctx context.Context) error {
	for i, d := range s.drovers[1:] {
		key, err := os.ReadFile(filepath.Join(s.drovers[0].State, "nodes.key"))
		if err == nil {
			err = d.Stop()
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(d.State, "nodes.key"), key, 0o600)
		}
		if err == nil {
			err = s.spaces[i+1].StartDrover(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// config returns the config of a server. All have one list of servers.
func (s *stage) config(i int) string {
	var b strings.Builder
	also := ""
	if len(s.spaces) > 1 {
		also = fmt.Sprintf(", also: [http://%s, http://%s]", serverAddr(0), serverAddr(1))
	}
	fmt.Fprintf(&b, "server: {interfaces: [%s], address: %s, api: %q%s}\n", lab.Bridge, serverAddr(i), apiAddr, also)
	fmt.Fprintf(&b, "subnets: [{cidr: %s, lease: 1h}, {cidr: %s, router: %s, lease: 1h}]\n", netip.PrefixFrom(serverAddr(0), 24).Masked(), machinesNet, relayAddr(0))
	b.WriteString("tags: {all: {files: {/etc/secret: {content: \"of the tenant\\n\"}}}}\npools:\n")
	if len(s.spaces) == 1 { // ranges are for one server
		fmt.Fprintf(&b, "  - {name: lobby, catchall: true, image: %s, range: %s-10.29.255.250}\n", imageName, firstDynamic.Next())
	}
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
	for _, d := range s.drovers {
		errs = append(errs, d.Stop())
	}
	if s.wire != nil {
		s.wire.close()
	}
	for _, rack := range s.spaces {
		errs = append(errs, rack.Close())
	}
	return errors.Join(errs...)
}
