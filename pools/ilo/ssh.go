package ilo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// Login is how to get at a chassis manager.
type Login struct {
	Address  string // host:port
	User     string
	Password Secret
	Identity []byte // a private key in PEM, tried before the password; nil: none

	HostKey  string    // SHA256:...; empty: as HostKeys has it
	HostKeys *HostKeys // pins at first use

	// Legacy offers the algorithms of old firmware too.
	Legacy bool

	// Prompt is what the interactive command line asks with, when it is not one
	// word and > or ->, such as hpiLO->.
	Prompt string

	Timeouts Timeouts
}

// Timeouts bound how long a chassis may take. Zero fields have the defaults.
type Timeouts struct {
	Dial      time.Duration // until TCP is there; default 10s
	Handshake time.Duration // until the login is answered; default 30s, since some need 5s
	Command   time.Duration // until a command is answered; default 60s
	Backoff   time.Duration // before a second try to connect, then twice; default 1s
}

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Dial: cmp.Or(t.Dial, 10*time.Second), Handshake: cmp.Or(t.Handshake, 30*time.Second),
		Command: cmp.Or(t.Command, time.Minute), Backoff: cmp.Or(t.Backoff, time.Second),
	}
}

// dialTries is how often a connection is tried before the password was shown.
// After that there is no second try: three wrong ones lock the account.
const dialTries = 3

// Console is the command line of a chassis manager: one connection, one login,
// whatever is asked over it. It is for one goroutine at a time.
type Console struct {
	login  Login
	client *ssh.Client
	shell  *shell // once exec turned out not to work
	execs  bool   // exec has worked
}

// Dial connects and logs in. Errors wrap [ErrRefused], [ErrHostKey] or
// [ErrUnreachable].
func Dial(ctx context.Context, l Login) (*Console, error) {
	l.Timeouts = l.Timeouts.withDefaults()
	if _, _, err := net.SplitHostPort(l.Address); err != nil {
		return nil, fmt.Errorf("%q is no address: want host:port", l.Address)
	}
	wait := l.Timeouts.Backoff
	for try := 1; ; try++ {
		client, err := l.connect(ctx, try == 2)
		switch {
		case err == nil:
			return &Console{login: l, client: client}, nil
		case try == dialTries, !errors.Is(err, errTransport), ctx.Err() != nil:
			return nil, err
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-ctx.Done():
			return nil, err
		}
	}
}

// errTransport marks what may be tried again: nothing secret was sent.
var errTransport = fmt.Errorf("%w", ErrUnreachable)

// connect is one try; few is for servers that dislike a long offer.
func (l Login) connect(ctx context.Context, few bool) (*ssh.Client, error) {
	dialer := net.Dialer{Timeout: l.Timeouts.Dial}
	conn, err := dialer.DialContext(ctx, "tcp", l.Address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errTransport, err)
	}
	// The library's own timeout is for the dialling alone; a server that is
	// silent afterwards would hold us for ever.
	if err := conn.SetDeadline(time.Now().Add(l.Timeouts.Handshake)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	shown := false // the password was sent
	config, err := l.config(few, &shown)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	sc, channels, requests, err := ssh.NewClientConn(conn, l.Address, config)
	if err != nil {
		conn.Close()
		return nil, l.refused(err, shown, few)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, sc.Close())
	}
	return ssh.NewClient(sc, channels, requests), nil
}

// config is the login. The password is sent once, whatever ways to send it the
// server offers.
func (l Login) config(few bool, shown *bool) (*ssh.ClientConfig, error) {
	password := func() (string, error) {
		if *shown {
			return "", ErrRefused
		}
		*shown = true
		return string(l.Password), nil
	}
	config := &ssh.ClientConfig{User: l.User, HostKeyCallback: l.hostKeyCheck(), ClientVersion: "SSH-2.0-drover"}
	l.algorithms(config, few)
	if len(l.Identity) > 0 {
		key, err := ssh.ParsePrivateKey(l.Identity)
		if err != nil {
			return nil, fmt.Errorf("the private key for %s: %w", l.Address, err)
		}
		config.Auth = append(config.Auth, ssh.PublicKeys(key))
	}
	if l.Password != "" {
		config.Auth = append(config.Auth, ssh.PasswordCallback(password),
			ssh.KeyboardInteractive(func(_, _ string, questions []string, _ []bool) ([]string, error) {
				answers := make([]string, len(questions))
				if len(questions) == 0 {
					return answers, nil // only a message
				}
				var err error
				answers[0], err = password()
				return answers, err
			}))
	}
	return config, nil
}

// refused sorts out why a handshake did not succeed.
func (l Login) refused(err error, shown, few bool) error {
	if errors.Is(err, ErrHostKey) || errors.Is(err, errPins) {
		return err
	}
	if e, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok {
		kind, hint := ErrUnreachable, "the chassis speaks only old SSH: allow it with --legacy, or legacy: true in the config"
		if l.Legacy {
			hint = "none of them is in Go's library"
		}
		if few && l.Legacy {
			kind = errTransport // the next offer is a long one again
		}
		return fmt.Errorf("%w: %s: no common algorithm for %s, it offers %q (%s)", kind, l.Address, e.What, e.RequestedAlgorithms, hint)
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case shown && ok && timeout.Timeout():
		return fmt.Errorf("%w: %s did not answer the login within %s", ErrUnreachable, l.Address, l.Timeouts.Handshake)
	case shown, l.Password == "" && len(l.Identity) > 0:
		// Some servers hang up instead of saying no, which is the same here: to
		// send the password again might lock the account.
		return fmt.Errorf("%w: %s does not let %q in (it was tried once): %w", ErrRefused, l.Address, l.User, err)
	case ok && timeout.Timeout():
		return fmt.Errorf("%w: %s accepts connections and says nothing for %s", errTransport, l.Address, l.Timeouts.Handshake)
	}
	return fmt.Errorf("%w: %s: %w", errTransport, l.Address, err)
}

// Close ends the connection.
func (c *Console) Close() error {
	if c.shell != nil {
		c.shell.leave()
	}
	return c.client.Close()
}

// Run does one command and returns what the chassis says to it.
func (c *Console) Run(ctx context.Context, command string) (string, error) {
	limit := c.login.Timeouts.Command
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %s did not answer %q within %s", ErrUnreachable, c.login.Address, command, limit))
	defer cancel()
	if c.shell != nil {
		text, err := c.shell.run(ctx, command)
		if err != nil {
			return "", c.because(ctx, err)
		}
		return text, nil
	}
	text, err := c.exec(ctx, command)
	if errors.Is(err, errNoExec) && !c.execs {
		if err := c.openShell(ctx); err != nil {
			return "", c.because(ctx, err)
		}
		text, err = c.shell.run(ctx, command)
	}
	if err != nil {
		return "", c.because(ctx, err)
	}
	c.execs = c.shell == nil
	return text, nil
}

// because is the error of a command: the reason that the context has, when it
// is over.
func (c *Console) because(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrUnreadable), errors.Is(err, ErrUnreachable), errors.Is(err, ErrRefused):
		return err
	}
	return &brokenError{c.login.Address, err}
}

// openShell goes over to the interactive command line. A manager that hangs up
// on exec needs a second login for it; the first one was accepted, so that this
// locks no account.
func (c *Console) openShell(ctx context.Context) (err error) {
	if c.shell, err = newShell(ctx, c.client, c.login.Prompt); err == nil || ctx.Err() != nil {
		return err
	}
	if c.alive(ctx) {
		return err
	}
	client, err := c.login.connect(ctx, false)
	if err != nil {
		return err
	}
	c.client.Close()
	c.client = client
	c.shell, err = newShell(ctx, c.client, c.login.Prompt)
	return err
}
