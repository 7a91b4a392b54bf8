package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"drover/hardware/bmc"
	"drover/hardware/moonshot"
	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// Moonshot imports the nodes of chassis. Set one of Names, Chassis and FromFile.
type Moonshot struct {
	Target

	Names    []string // of chassis in the config file
	Chassis  []string // [NAME=]ADDRESS
	FromFile string   // [NAME=]FILE with a pasted transcript; the file - is Stdin
	Stdin    io.Reader
	Via      string        // auto, ssh or rest
	Nodes    string        // a selection: c1n1,c3,5-9
	SaveDir  string        // for transcripts without secrets; empty: they are not saved
	Template pools.Chassis // NameTemplate, IPTemplate and NIC of the nodes
	Options  Options

	Parallel int                       // chassis at a time
	Base     func() (bmc.Login, error) // pins, timeouts and private key
	Login    func() (bmc.Login, error) // Base with the password and the other flags
}

// source is a chassis to read, with the result.
type source struct {
	moonshot.Address
	file   string         // from FromFile
	config *pools.Chassis // from Names; nil: the chassis is from Chassis or FromFile
	farm   *resolve.Farm  // the farm with config
	login  bmc.Login
	chosen pools.Selection
	namer  *Namer

	inv        *moonshot.Inventory
	transcript string
	err        error
}

// Run imports the chassis. It returns errors in the fields and of the target. Errors of
// single chassis are in the result.
func (m *Moonshot) Run(ctx context.Context) (*Result, error) {
	sources, err := m.sources()
	if err != nil {
		return nil, usage(err)
	}
	if m.FromFile != "" {
		sources[0].inv, sources[0].err = m.parseFile(sources[0].file)
	} else {
		if err := m.logins(sources); err != nil {
			return nil, err
		}
		inParallel(len(sources), m.Parallel, func(i int) { sources[i].read(ctx, m.Via) })
		if err := m.save(sources); err != nil {
			return nil, err
		}
	}
	r, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if err := m.add(ctx, r, s); err != nil {
			r.fail(s.Name, err)
		}
	}
	return r, nil
}

// add compares and stores one chassis.
func (m *Moonshot) add(ctx context.Context, r *Result, s *source) error {
	if s.err != nil {
		return s.err
	}
	o := m.Options
	o.Select = s.chosen
	s.inv.Choose(o.Select)
	changes, err := s.namer.Compare(s.inv, r.stored(), o)
	if err != nil {
		return err
	}
	if err := r.add(ctx, s.Name, changes, s.inv.Notes()); err != nil {
		return err
	}
	r.Done++
	return nil
}

// sources checks the fields and returns the chassis to read.
func (m *Moonshot) sources() (out []*source, err error) {
	if m.Via != "auto" && m.Via != "ssh" && m.Via != "rest" {
		return nil, fmt.Errorf("--via %q: want auto, ssh or rest", m.Via)
	}
	chosen, err := pools.ParseSelection(m.Nodes)
	if err != nil {
		return nil, fmt.Errorf("--nodes: %w", err)
	}
	if len(m.Names) > 0 {
		return m.named()
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	switch {
	case m.FromFile != "" && len(m.Chassis) > 0:
		return nil, errors.New("--chassis and --from-file: give one of them")
	case m.FromFile != "":
		name, file, named := strings.Cut(m.FromFile, "=")
		if !named {
			file = m.FromFile
			name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		}
		out = append(out, &source{Address: moonshot.Address{Name: name}, file: file})
	case len(m.Chassis) == 0:
		return nil, errors.New("--chassis or --from-file is missing: which chassis?")
	}
	seen := map[string]bool{}
	for _, text := range m.Chassis {
		at, err := moonshot.ParseAddress(text)
		if err != nil {
			return nil, err
		}
		for _, key := range []string{at.Name, at.Host} {
			if seen[key] {
				return nil, fmt.Errorf("--chassis %q: %s is there twice", text, key)
			}
			seen[key] = true
		}
		out = append(out, &source{Address: at})
	}
	for _, s := range out {
		c := m.Template
		c.Name, c.Pool, c.Tags = s.Name, m.Pool, m.Tags
		if err := s.name(c, m.Apply); err != nil {
			return nil, err
		}
		s.chosen = chosen
	}
	return out, nil
}

// name creates the namer. Slots are recorded only for a server, which stores them.
func (s *source) name(c pools.Chassis, recordSlot bool) (err error) {
	if s.namer, err = NewNamer(c, recordSlot); err != nil {
		return fmt.Errorf("chassis %s: %w", s.Name, err)
	}
	return nil
}

// named returns the chassis of Names, from the config file.
func (m *Moonshot) named() (out []*source, err error) {
	file := m.Config
	farm, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	if m.Apply {
		m.Config = "" // the nodes are compared with the server's
	}
	m.Pool = "of the config" // for check; each chassis has its own
	if err := m.check(); err != nil {
		return nil, err
	}
	for i, name := range m.Names {
		c, ok := farm.Chassis(name)
		if !ok {
			return nil, fmt.Errorf("%s has no chassis %q", file, name)
		}
		if slices.Contains(m.Names[:i], name) {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		s := &source{Address: moonshot.Address{Name: name, Via: c.Via, Host: c.Address}, config: &c, farm: farm}
		if err := s.name(c, m.Apply); err != nil {
			return nil, err
		}
		if s.chosen, err = pools.ParseSelection(c.Nodes); err != nil {
			return nil, fmt.Errorf("chassis %s: %w", name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// logins sets the logins of all chassis. They share one file of pins.
func (m *Moonshot) logins(sources []*source) error {
	open := m.Login
	if len(m.Names) > 0 {
		open = m.Base
	}
	login, err := open()
	if err != nil {
		return err
	}
	for _, s := range sources {
		s.login = login
		if s.config == nil {
			s.login.Address = s.Host
		} else if s.login, err = login.ForChassis(s.farm, *s.config); err != nil {
			return fmt.Errorf("chassis %s: %w", s.Name, err)
		}
	}
	return nil
}

// read reads one chassis.
func (s *source) read(ctx context.Context, via string) {
	manager, err := moonshot.Open(s.login, s.Choose(via))
	if err != nil {
		s.err = err
		return
	}
	defer manager.Close()
	s.inv, s.transcript, s.err = manager.Inventory(ctx)
}

// maxTranscript bounds a file, in bytes; [moonshot.Parse] bounds its content.
const maxTranscript = 4 << 20

// parseFile reads a pasted transcript.
func (m *Moonshot) parseFile(file string) (*moonshot.Inventory, error) {
	in := m.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxTranscript))
	if err != nil {
		return nil, err
	}
	inv, err := moonshot.Parse(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return inv, nil
}

// save writes the transcripts into a directory, for a bug report, without the
// password and the address of the manager.
func (m *Moonshot) save(sources []*source) error {
	if m.SaveDir == "" {
		return nil
	}
	if err := os.MkdirAll(m.SaveDir, 0o700); err != nil {
		return fmt.Errorf("--save-transcript: %w", err)
	}
	var errs []error
	for _, s := range sources {
		if s.transcript == "" {
			continue
		}
		host, _, _ := strings.Cut(s.Host, ":")
		text := s.transcript
		for _, secret := range []string{string(s.login.Password), s.Host, host} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "[removed]")
			}
		}
		errs = append(errs, atomicfile.Write(filepath.Join(m.SaveDir, s.Name+".txt"), []byte(text), 0o600))
	}
	return errors.Join(errs...)
}

// inParallel calls do for 0 to n-1, at most limit at a time, and waits for all.
func inParallel(n, limit int, do func(i int)) {
	var g errgroup.Group
	g.SetLimit(cmp.Or(limit, 1))
	for i := range n {
		g.Go(func() error { do(i); return nil })
	}
	_ = g.Wait() // do reports its own errors
}
