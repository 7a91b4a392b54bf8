package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/pools/ilo/ilosim"
)

// simulation is "drover ilosim": management processors that are not there, to
// try import and power with.
type simulation struct {
	listen, listenREST string
	profile            string
	looks, faults      []string
	cartridges, nodes  int
	cards              int
	seed               uint8
	iloGeneration      int
	user, password     string
	powerDelay         time.Duration
	onAction           string
}

func newILOSimCommand() *cobra.Command {
	s := &simulation{}
	cmd := &cobra.Command{
		Use:    "ilosim",
		Short:  "Simulate a Moonshot chassis, or an iLO",
		Hidden: true,
		Long: `Ilosim listens on loopback as the manager of a Moonshot chassis does, over SSH
and REST, until it is stopped. It prints where. With --ilo it is the iLO of one
server instead. With --on-action a program is run for each node that is switched:
PROGRAM SLOT on|off pxe|disk.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", "127.0.0.1:0", "address for SSH")
	f.StringVar(&s.listenREST, "listen-rest", "127.0.0.1:0", "address for HTTPS")
	f.StringVar(&s.profile, "profile", string(ilosim.Modern), "modern|legacy14|legacy1|dss|kbdint")
	f.StringSliceVar(&s.looks, "look", nil, "how it writes: old, two, crcrlf, upper, dashes, blank, colours, async, no-ruler, extra, wrap, pager, bad-bytes")
	f.StringSliceVar(&s.faults, "fault", nil, "what goes wrong, NAME or NAME:TIMES")
	f.IntVar(&s.cartridges, "cartridges", 45, "how many slots are filled")
	f.IntVar(&s.nodes, "nodes", 1, "nodes of each cartridge")
	f.IntVar(&s.cards, "nics", 2, "network cards of each node")
	f.Uint8Var(&s.seed, "seed", 1, "makes other MACs")
	f.IntVar(&s.iloGeneration, "ilo", 0, "simulate an iLO of this generation, 3 to 6, instead")
	f.StringVar(&s.user, "user", "Administrator", "who may log in")
	f.StringVar(&s.password, "password", "correct horse", "and with what; a password for a simulator only")
	f.DurationVar(&s.powerDelay, "power-delay", 0, "how long a node takes to be on")
	f.StringVar(&s.onAction, "on-action", "", "program that is run when a node is switched")
	return cmd
}

func (s *simulation) run(cmd *cobra.Command) error {
	c := ilosim.New(s.seed, s.cartridges, s.nodes, s.cards)
	handler := c.Handler(ilosim.OData)
	if s.iloGeneration != 0 {
		i := ilosim.NewILO(s.iloGeneration, s.seed)
		c, handler = i.Control(), i.Handler()
	}
	c.User, c.Password, c.Profile, c.PowerDelay = s.user, s.password, ilosim.Profile(s.profile), s.powerDelay
	var err error
	if c.Look, err = ilosim.ParseLook(s.looks); err != nil {
		return &exitError{exitUsage, err}
	}
	for _, text := range s.faults {
		name, times, counted := strings.Cut(text, ":")
		f, err := ilosim.ParseFault(name)
		n := ilosim.Always
		if counted && err == nil {
			_, err = fmt.Sscanf(times, "%d", &n)
		}
		if err != nil {
			return &exitError{exitUsage, fmt.Errorf("--fault: %w", err)}
		}
		c.Break(f, n)
	}
	if s.onAction != "" {
		c.OnAction = s.action(cmd)
	}
	return s.serve(cmd, c, handler)
}

// serve listens until the command is stopped.
func (s *simulation) serve(cmd *cobra.Command, c *ilosim.Chassis, handler http.Handler) error {
	rest, err := ilosim.ServeHTTPS(s.listenREST, handler)
	if err != nil {
		return err
	}
	defer rest.Close()
	out := cmd.OutOrStdout()
	if s.iloGeneration == 0 {
		ssh, err := c.ServeSSH(s.listen)
		if err != nil {
			return err
		}
		defer ssh.Close()
		fmt.Fprintln(out, "ssh", ssh.Addr, ssh.Fingerprint)
	}
	fmt.Fprintln(out, "rest", rest.Addr, rest.Pin)
	<-cmd.Context().Done()
	fmt.Fprintln(out, "logins", c.Logins())
	return nil
}

// action runs the program that wants to know of switched nodes.
func (s *simulation) action(cmd *cobra.Command) func(slot string, a ilosim.Action) {
	return func(slot string, a ilosim.Action) {
		power, from := "off", "disk"
		if a.On {
			power = "on"
		}
		if a.PXE {
			from = "pxe"
		}
		p := exec.CommandContext(cmd.Context(), s.onAction, slot, power, from)
		p.Stdout, p.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
		if err := p.Run(); err != nil && cmd.Context().Err() == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "drover: %s %s %s: %v\n", s.onAction, slot, power, err)
		}
	}
}
