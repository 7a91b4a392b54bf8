package bmc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"drover/internal/printable"
)

// Program is the [Driver] that runs a program of the operator as
// "PROGRAM on|off|pxe|status NAME". For status the program prints on or off; any other
// output is [Unknown]. The error of a failed program contains its standard error.
type Program struct {
	Path    string
	Name    string
	Timeout time.Duration // default 30s
}

func (p Program) run(ctx context.Context, action string) (string, error) {
	c := child{program: p.Path, args: []string{action, p.Name}, timeout: p.Timeout}
	return c.run(ctx, p.Name)
}

// State runs the program with status.
func (p Program) State(ctx context.Context) (State, error) {
	text, err := p.run(ctx, "status")
	if err != nil {
		return Unknown, err
	}
	s, _ := ParseState(text)
	return s, nil
}

// On runs the program with on.
func (p Program) On(ctx context.Context) error { return p.do(ctx, "on") }

// Off runs the program with off.
func (p Program) Off(ctx context.Context) error { return p.do(ctx, "off") }

// PXEOnce runs the program with pxe. The program must fail if it cannot set PXE, and it has no
// word to take that back.
func (p Program) PXEOnce(ctx context.Context) (undo func(context.Context) error, err error) {
	return nil, p.do(ctx, "pxe")
}

func (p Program) do(ctx context.Context, action string) error {
	_, err := p.run(ctx, action)
	return err
}

// child is a program to run for a machine.
type child struct {
	program string
	args    []string
	env     []string // in addition to PATH and LC_ALL
	timeout time.Duration
}

const (
	maxOutput = 64 << 10 // bytes of a program's output that are kept
	maxShown  = 240      // bytes of it in an error: a completion code of IPMI is at its end
)

func (c child) run(ctx context.Context, about string) (string, error) {
	c.timeout = cmp.Or(c.timeout, 30*time.Second)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	p := exec.CommandContext(ctx, c.program, c.args...)
	p.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, c.env...)
	p.WaitDelay = time.Second // a grandchild may hold the pipes
	var out, errs head
	p.Stdout, p.Stderr = &out, &errs
	err := p.Run()
	_, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return out.b.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("%w: %s: %s did not end within %s", ErrUnreachable, about, c.program, c.timeout)
	case !failed:
		return "", fmt.Errorf("%s: %w", about, err)
	}
	text := errs.b.String()
	for _, e := range c.env {
		if _, secret, ok := strings.Cut(e, "="); ok && secret != "" {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return "", fmt.Errorf("%s: %s %s: %w: %s", about, c.program, strings.Join(c.args[max(0, len(c.args)-3):], " "), err, printable.Line(strings.Join(strings.Fields(text), " "), maxShown))
}

// head is a writer that accepts all of its input and keeps the first maxOutput bytes.
type head struct{ b bytes.Buffer }

func (t *head) Write(p []byte) (int, error) {
	t.b.Write(p[:min(len(p), max(0, maxOutput-t.b.Len()))])
	return len(p), nil
}
