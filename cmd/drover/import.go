package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"drover/pools/ilo"
)

// The exit codes of import. They are its own: a script that runs it for twenty
// chassis wants to tell a wrong password from a cable.
const (
	importUsage       = 1
	importPartly      = 2
	importRefused     = 3
	importUnreachable = 4
	importUnreadable  = 5
	importConflict    = 6
)

func newImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Read nodes from the hardware: Moonshot chassis, iLO",
		Long: `Import asks the hardware which machines there are, and makes nodes of them: as
YAML for the config file, or over the REST API of a running server (--apply).

It adds and changes nodes and deletes none. What is known by its place (chassis
and slot) stays the same node when its cartridge is exchanged.

Exit codes of import: 0 done, 1 usage, 2 partly done (a node without a MAC, a
chassis of several that failed), 3 login refused, 4 unreachable, 5 not
understood, or most of a chassis missing, 6 conflicts.`,
		Args: noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{importUsage, err} })
	cmd.AddCommand(newImportMoonshotCommand(), newImportILOCommand())
	return cmd
}

// importCode is the exit code for an error of the hardware or of the API.
func importCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		switch e.code {
		case exitUnreachable:
			return importUnreachable
		case exitRefused:
			return importRefused
		case exitFailed: // an importCode already
			return importUsage
		}
		return e.code
	}
	switch {
	case errors.Is(err, ilo.ErrRefused), errors.Is(err, ilo.ErrHostKey):
		return importRefused
	case errors.Is(err, ilo.ErrUnreachable):
		return importUnreachable
	case errors.Is(err, ilo.ErrUnreadable), errors.Is(err, ilo.ErrLost):
		return importUnreadable
	}
	return importUsage
}

// outcome gathers how the import of several chassis ended.
type outcome struct {
	done      int // chassis that were read, and written when they were to be
	failed    []error
	partial   bool // a node could not be imported yet
	conflicts int
}

// fail notes that one chassis was not imported.
func (o *outcome) fail(name string, err error) {
	o.failed = append(o.failed, fmt.Errorf("%s: %w", name, err))
}

// note counts what is to be told of changes by the exit code.
func (o *outcome) note(changes []ilo.Change) {
	for _, c := range changes {
		switch c.Kind {
		case ilo.Conflict:
			o.conflicts++
		case ilo.Incomplete:
			o.partial = true
		}
	}
}

// err is the error of the whole command.
func (o *outcome) err() error {
	if len(o.failed) > 0 {
		code := importPartly
		if o.done == 0 {
			code = importCode(o.failed[0])
		}
		return &exitError{code, errors.Join(o.failed...)}
	}
	switch {
	case o.conflicts > 0:
		return &exitError{importConflict, fmt.Errorf("nodes in conflict, left as they were: %d", o.conflicts)}
	case o.partial:
		return &exitError{importPartly, errors.New("some nodes have no MAC yet, or were not understood (switch them on once, and import again)")}
	}
	return nil
}
