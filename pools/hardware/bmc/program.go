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

	"drover/pools/printable"
)

// IPMI is the [Driver] for IPMI 2.0. It runs the program ipmitool. The password is in
// the environment of the program, because any user of the host can read arguments.
type IPMI struct {
	Program  string // default ipmitool
	Host     string
	User     string
	Password Secret
	Options  []string      // further arguments, such as -L OPERATOR; for a cartridge -B 0 -T 0x82 -b 7 -t 0x72
	Timeout  time.Duration // of one command; default 30s
}

func (p IPMI) run(ctx context.Context, words ...string) (string, error) {
	args := []string{"-I", "lanplus", "-H", p.Host, "-U", p.User, "-E"}
	args = append(append(args, p.Options...), words...)
	c := child{program: cmp.Or(p.Program, "ipmitool"), args: args, env: []string{"IPMI_PASSWORD=" + string(p.Password)}, timeout: p.Timeout}
	return c.run(ctx, p.Host)
}

// State runs "chassis power status", which prints "Chassis Power is on".
func (p IPMI) State(ctx context.Context) (State, error) {
	text, err := p.run(ctx, "chassis", "power", "status")
	if err != nil {
		return Unknown, err
	}
	_, word, _ := strings.Cut(strings.ToLower(text), "power is ")
	s, _ := ParseState(word)
	return s, nil
}

// On runs "chassis power on".
func (p IPMI) On(ctx context.Context) error {
	_, err := p.run(ctx, "chassis", "power", "on")
	return err
}

// Off runs "chassis power off", which does not involve the operating system.
func (p IPMI) Off(ctx context.Context) error {
	_, err := p.run(ctx, "chassis", "power", "off")
	return err
}

// PXEOnce sets the boot device, and checks it in boot parameter 5, the boot flags.
func (p IPMI) PXEOnce(ctx context.Context) error {
	if _, err := p.run(ctx, "chassis", "bootdev", "pxe"); err != nil {
		return err
	}
	text, err := p.run(ctx, "chassis", "bootparam", "get", "5")
	if err != nil {
		return err
	}
	if !strings.Contains(strings.ToLower(text), "force pxe") {
		return fmt.Errorf("%w: %s: it was told to boot from the network once, and does not say so", ErrUnreadable, p.Host)
	}
	return nil
}

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

// PXEOnce runs the program with pxe. The program must fail if it cannot set PXE.
func (p Program) PXEOnce(ctx context.Context) error { return p.do(ctx, "pxe") }

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

// maxOutput bounds the part of a program's output that is kept, in bytes.
const maxOutput = 64 << 10

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
	return "", fmt.Errorf("%s: %s %s: %w: %s", about, c.program, strings.Join(c.args[max(0, len(c.args)-3):], " "), err, printable.Line(text, 80))
}

// head is a writer that accepts all of its input and keeps the first maxOutput bytes.
type head struct{ b bytes.Buffer }

func (t *head) Write(p []byte) (int, error) {
	t.b.Write(p[:min(len(p), max(0, maxOutput-t.b.Len()))])
	return len(p), nil
}
