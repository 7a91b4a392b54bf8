package sshcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"drover/hardware/bmc"
)

// errNoExec reports a manager that does not run single commands.
var errNoExec = errors.New("no exec")

// exec runs a command in a channel of its own.
func (c *Console) exec(ctx context.Context, command string) (string, error) {
	// Closing the connection ends every call that waits for the chassis.
	defer context.AfterFunc(ctx, func() { c.client.Close() })()
	s, err := newSession(ctx, c.client)
	if err != nil {
		return "", c.noExec(err)
	}
	defer s.Close()
	out := &bounded{tooMuch: func() { c.client.Close() }}
	s.Stdout, s.Stderr = out, out
	if err := s.Start(command); err != nil {
		return "", c.noExec(err)
	}
	err = s.Wait()
	text, full := out.text()
	_, noStatus := errors.AsType[*ssh.ExitMissingError](err)
	_, status := errors.AsType[*ssh.ExitError](err)
	switch {
	case full:
		return "", fmt.Errorf("%w: %s says more than %d bytes to %q", bmc.ErrUnreadable, c.login.Address, bmc.MaxAnswer, command)
	case noStatus && !c.alive(ctx):
		// Some managers never send an exit status, but here the connection has ended:
		// the answer is incomplete.
		if text == "" {
			return "", c.noExec(err)
		}
		return "", errors.New("in the middle of an answer")
	case err != nil && !noStatus && !status:
		return "", err
	case strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), command)) == "" && !c.execs:
		return "", errNoExec
	}
	return text, nil
}

// newSession opens a channel. The call of package ssh can block for ever when the
// connection ends at that moment, even after it is closed. Its goroutine is then
// abandoned.
func newSession(ctx context.Context, client *ssh.Client) (*ssh.Session, error) {
	type opened struct {
		session *ssh.Session
		err     error
	}
	answer, over := make(chan opened, 1), make(chan error, 1)
	go func() {
		s, err := client.NewSession()
		answer <- opened{s, err}
	}()
	go func() { over <- client.Wait() }()
	select {
	case a := <-answer:
		return a.session, a.err
	case err := <-over:
		return nil, fmt.Errorf("the connection is over: %w", err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noExec returns err wrapped in errNoExec, or err itself if exec has worked before.
func (c *Console) noExec(err error) error {
	if c.execs {
		return err
	}
	return fmt.Errorf("%w: %w", errNoExec, err)
}

// aliveWait bounds the wait for the answer to a keepalive request. A manager that
// ignores such requests counts as alive.
const aliveWait = 2 * time.Second

// alive reports whether the connection still exists.
func (c *Console) alive(ctx context.Context) bool {
	answer := make(chan error, 1)
	go func() {
		_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
		answer <- err
	}()
	select {
	case err := <-answer:
		return err == nil
	case <-time.After(aliveWait):
		return true
	case <-ctx.Done():
		return false
	}
}

// bounded is a writer that keeps up to bmc.MaxAnswer bytes, and fails after them.
type bounded struct {
	tooMuch func() // called once

	mu   sync.Mutex
	buf  bytes.Buffer
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full || b.buf.Len()+len(p) > bmc.MaxAnswer {
		if !b.full {
			b.full = true
			b.tooMuch()
		}
		return 0, errors.New("too much")
	}
	return b.buf.Write(p)
}

func (b *bounded) text() (s string, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String(), b.full
}
