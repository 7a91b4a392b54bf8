// Command ilosim simulates a Moonshot chassis, or an iLO, on loopback: a target
// to try "drover import" and "drover power" on without hardware.
//
//	go run ./e2e/ilosim/cmd/ilosim --profile legacy14 --format old,crcrlf
//
// It prints the addresses it listens on, with the fingerprints of its keys, and
// runs until it is interrupted. The simulation is package
// [drover/e2e/ilosim]; this command has flags and printing only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"drover/e2e/ilosim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "ilosim:", err)
		os.Exit(1)
	}
}

// simulation holds the values of the flags.
type simulation struct {
	listen, listenREST string
	profile            string
	format             ilosim.Format
	faults             map[ilosim.Fault]int // how many times each occurs
	cartridges, nodes  int
	cards              int
	seed               uint
	iloGeneration      int
	user, password     string
	powerDelay         time.Duration
	onAction           string
}

// run parses the flags and serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s := simulation{faults: map[ilosim.Fault]int{}}
	if err := s.parse(args, stderr); err != nil {
		return err
	}
	c := ilosim.New(byte(s.seed), s.cartridges, s.nodes, s.cards)
	handler := c.Handler(ilosim.OData)
	if s.iloGeneration != 0 {
		i := ilosim.NewILO(s.iloGeneration, byte(s.seed))
		c, handler = i.Chassis(), i.Handler()
	}
	c.User, c.Password, c.Profile, c.PowerDelay, c.Format = s.user, s.password, ilosim.Profile(s.profile), s.powerDelay, s.format
	for f, times := range s.faults {
		c.Inject(f, times)
	}
	if s.onAction != "" {
		c.OnAction = func(slot string, a ilosim.Action) { s.runHook(ctx, stdout, stderr, slot, a) }
	}
	return s.serve(ctx, stdout, c, handler)
}

// parse reads the flags. A mistake, or --help, writes the usage to w.
func (s *simulation) parse(args []string, w io.Writer) error {
	f := flag.NewFlagSet("ilosim", flag.ContinueOnError)
	f.SetOutput(w)
	f.StringVar(&s.listen, "listen", "127.0.0.1:0", "`address` for SSH")
	f.StringVar(&s.listenREST, "listen-rest", "127.0.0.1:0", "`address` for HTTPS")
	f.StringVar(&s.profile, "profile", string(ilosim.Modern), "SSH algorithms: modern|legacy14|legacy1|dss|kbdint")
	f.Func("format", "output `formats`: old, two, crcrlf, upper, dashes, blank, colours, async, no-ruler, extra, wrap, pager, bad-bytes", func(list string) (err error) {
		s.format, err = ilosim.ParseFormat(strings.Split(list, ","))
		return err
	})
	f.Func("fault", "`faults` to inject, NAME or NAME:TIMES, separated by commas", s.addFaults)
	f.IntVar(&s.cartridges, "cartridges", 45, "cartridges in the chassis")
	f.IntVar(&s.nodes, "nodes", 1, "nodes of each cartridge")
	f.IntVar(&s.cards, "nics", 2, "network cards of each node")
	f.UintVar(&s.seed, "seed", 1, "`number` from 0 to 255 that MACs and serial numbers are made from")
	f.IntVar(&s.iloGeneration, "ilo", 0, "simulate an iLO of this `generation`, 3 to 6, instead of a chassis")
	f.StringVar(&s.user, "user", "Administrator", "user `name` of the login")
	f.StringVar(&s.password, "password", "correct horse", "password of the login; for a simulator only")
	f.DurationVar(&s.powerDelay, "power-delay", 0, "`time` a node takes to power on")
	f.StringVar(&s.onAction, "on-action", "", "`program` to run for each node that is switched: PROGRAM SLOT on|off pxe|disk")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return nil
}

// addFaults reads a list of NAME or NAME:TIMES.
func (s *simulation) addFaults(list string) error {
	for text := range strings.SplitSeq(list, ",") {
		name, count, counted := strings.Cut(text, ":")
		fault, err := ilosim.ParseFault(name)
		if err != nil {
			return err
		}
		times := ilosim.Always
		if counted {
			if times, err = strconv.Atoi(count); err != nil {
				return err
			}
		}
		s.faults[fault] = times
	}
	return nil
}

// serve listens until ctx ends.
func (s *simulation) serve(ctx context.Context, out io.Writer, c *ilosim.Chassis, handler http.Handler) error {
	rest, err := ilosim.ServeHTTPS(s.listenREST, handler)
	if err != nil {
		return err
	}
	defer rest.Close()
	if s.iloGeneration == 0 {
		ssh, err := c.ServeSSH(s.listen)
		if err != nil {
			return err
		}
		defer ssh.Close()
		fmt.Fprintln(out, "ssh", ssh.Addr, ssh.Fingerprint)
	}
	fmt.Fprintln(out, "rest", rest.Addr, rest.Pin)
	<-ctx.Done()
	fmt.Fprintln(out, "logins", c.Logins())
	return nil
}

// runHook runs the program of --on-action.
func (s *simulation) runHook(ctx context.Context, stdout, stderr io.Writer, slot string, a ilosim.Action) {
	power, from := "off", "disk"
	if a.On {
		power = "on"
	}
	if a.PXE {
		from = "pxe"
	}
	p := exec.CommandContext(ctx, s.onAction, slot, power, from)
	p.Stdout, p.Stderr = stdout, stderr
	if err := p.Run(); err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "ilosim: %s %s %s: %v\n", s.onAction, slot, power, err)
	}
}
