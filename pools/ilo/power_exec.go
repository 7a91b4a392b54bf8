package ilo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// IPMIPower is the power of a machine over IPMI 2.0, by the program ipmitool.
// The password goes to it in its environment: its arguments are for anyone on
// the host to read.
type IPMIPower struct {
	Program  string // default ipmitool
	Host     string
	User     string
	Password Secret
	Options  []string      // more of them, such as -L OPERATOR, or -B 0 -T 0x82 -b 7 -t 0x72 for a cartridge
	Timeout  time.Duration // of one command; default 30s
}

func (p IPMIPower) run(ctx context.Context, words ...string) (string, error) {
	args := []string{"-I", "lanplus", "-H", p.Host, "-U", p.User, "-E"}
	args = append(append(args, p.Options...), words...)
	c := child{program: p.Program, args: args, env: []string{"IPMI_PASSWORD=" + string(p.Password)}, timeout: p.Timeout}
	if c.program == "" {
		c.program = "ipmitool"
	}
	return c.run(ctx, p.Host)
}

// State reads "Chassis Power is on".
func (p IPMIPower) State(ctx context.Context) (State, error) {
	text, err := p.run(ctx, "chassis", "power", "status")
	if err != nil {
		return Unknown, err
	}
	_, word, _ := strings.Cut(lower(text), "power is ")
	s, _ := parseState(word)
	return s, nil
}

// On is "chassis power on".
func (p IPMIPower) On(ctx context.Context) error {
	_, err := p.run(ctx, "chassis", "power", "on")
	return err
}

// Off is "chassis power off", which asks nobody.
func (p IPMIPower) Off(ctx context.Context) error {
	_, err := p.run(ctx, "chassis", "power", "off")
	return err
}

// PXEOnce sets the boot device and reads boot parameter 5, the boot flags, back.
func (p IPMIPower) PXEOnce(ctx context.Context) error {
	if _, err := p.run(ctx, "chassis", "bootdev", "pxe"); err != nil {
		return err
	}
	text, err := p.run(ctx, "chassis", "bootparam", "get", "5")
	if err != nil {
		return err
	}
	if !strings.Contains(lower(text), "force pxe") {
		return fmt.Errorf("%w: %s: it was told to boot from the network once, and does not say so", ErrUnreadable, p.Host)
	}
	return nil
}

// HookPower is the power of a machine by a program of the operator's: it is run
// as PROGRAM on|off|pxe|status NAME. For status it prints on, off or something
// else, which is unknown. What it writes to standard error is in the error when
// it fails.
type HookPower struct {
	Program string
	Name    string
	Timeout time.Duration // default 30s
}

func (p HookPower) run(ctx context.Context, action string) (string, error) {
	c := child{program: p.Program, args: []string{action, p.Name}, timeout: p.Timeout}
	return c.run(ctx, p.Name)
}

// State runs the program with status.
func (p HookPower) State(ctx context.Context) (State, error) {
	text, err := p.run(ctx, "status")
	if err != nil {
		return Unknown, err
	}
	s, _ := parseState(text)
	return s, nil
}

// On runs the program with on.
func (p HookPower) On(ctx context.Context) error { return p.do(ctx, "on") }

// Off runs the program with off.
func (p HookPower) Off(ctx context.Context) error { return p.do(ctx, "off") }

// PXEOnce runs the program with pxe, which fails when it cannot.
func (p HookPower) PXEOnce(ctx context.Context) error { return p.do(ctx, "pxe") }

func (p HookPower) do(ctx context.Context, action string) error {
	_, err := p.run(ctx, action)
	return err
}

// child is a program that is run for a machine.
type child struct {
	program string
	args    []string
	env     []string // beside PATH and LC_ALL
	timeout time.Duration
}

// maxSaid bounds what is kept of a program's output.
const maxSaid = 64 << 10

func (c child) run(ctx context.Context, about string) (string, error) {
	if c.timeout <= 0 {
		c.timeout = 30 * time.Second
	}
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
	text := clip(strings.ToValidUTF8(errs.b.String(), "?"))
	for _, e := range c.env {
		if _, secret, ok := strings.Cut(e, "="); ok && secret != "" {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return "", fmt.Errorf("%s: %s %s: %w: %s", about, c.program, strings.Join(c.args[max(0, len(c.args)-3):], " "), err, text)
}

// head keeps the beginning of what is written, and takes all.
type head struct{ b bytes.Buffer }

func (t *head) Write(p []byte) (int, error) {
	t.b.Write(p[:min(len(p), max(0, maxSaid-t.b.Len()))])
	return len(p), nil
}
