package ilo

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Runner does commands of a chassis manager. [Console] is one.
type Runner interface {
	// Run returns what the chassis says to a command. Errors wrap one of this
	// package's.
	Run(ctx context.Context, command string) (string, error)
}

// inventoryCommands are all that an inventory needs.
func inventoryCommands() []string { return []string{"show node list", "show node macaddr all"} }

// Scrape asks a chassis over SSH what it holds: one connection, one login, two
// commands. A connection that breaks in the middle is tried once more from the
// start; nothing that was half read is used. The transcript is what the chassis
// said, also when it was not understood.
func Scrape(ctx context.Context, l Login) (inv *Inventory, transcript string, err error) {
	for again := true; ; again = false {
		transcript, err = l.transcript(ctx)
		if _, broken := errors.AsType[*brokenError](err); !again || !broken || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, transcript, err
	}
	inv, err = Parse(transcript)
	if err != nil {
		return nil, transcript, fmt.Errorf("%s: %w", l.Address, err)
	}
	return inv, transcript, nil
}

// brokenError is a connection that was there and ended in the middle.
type brokenError struct {
	address string
	err     error
}

func (e *brokenError) Error() string {
	return fmt.Sprintf("%v: %s: the connection broke off: %v", ErrUnreachable, e.address, e.err)
}

func (e *brokenError) Unwrap() []error { return []error{ErrUnreachable, e.err} }

func (l Login) transcript(ctx context.Context) (string, error) {
	console, err := Dial(ctx, l)
	if err != nil {
		return "", err
	}
	defer console.Close()
	var b strings.Builder
	for _, command := range inventoryCommands() {
		text, err := console.Run(ctx, command)
		if err != nil {
			return b.String(), err
		}
		fmt.Fprintf(&b, "hpiLO-> %s\n%s\n", command, text)
	}
	return b.String(), nil
}
