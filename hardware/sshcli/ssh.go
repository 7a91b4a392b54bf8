package sshcli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"drover/hardware/bmc"
	"drover/internal/wait"
)

// dialTries bounds the attempts to connect. Once the password was sent there is no
// further attempt, because three wrong passwords lock the account.
const dialTries = 3

// login is a login over SSH.
type login struct{ bmc.Login }

// Console is the command line of a management processor: one connection and one
// login for all commands. It is for one goroutine at a time.
type Console struct {
	login  login
	client *ssh.Client
	shell  *shell // set when exec does not work
	execs  bool   // exec has worked
}

// Dial connects and logs in. Errors wrap [bmc.ErrRefused], [bmc.ErrHostKey] or
// [bmc.ErrUnreachable].
func Dial(ctx context.Context, to bmc.Login) (*Console, error) {
	l := login{to}
	l.Timeouts = l.Timeouts.WithDefaults()
	if _, _, err := net.SplitHostPort(l.Address); err != nil {
		return nil, fmt.Errorf("%q is no address: want host:port", l.Address)
	}
	delay := l.Timeouts.Backoff
	for try := 1; ; try++ {
		client, err := l.connect(ctx, try == 2)
		switch {
		case err == nil:
			return &Console{login: l, client: client}, nil
		case try == dialTries, !errors.Is(err, errTransport), ctx.Err() != nil:
			return nil, err
		}
		if wait.Sleep(ctx, delay) != nil {
			return nil, err
		}
		delay *= 2
	}
}

// errTransport marks errors after which another attempt is safe, because the password
// was not sent.
var errTransport = fmt.Errorf("%w", bmc.ErrUnreachable)

// connect makes one attempt to connect and log in. few is passed to login.algorithms.
func (l login) connect(ctx context.Context, few bool) (*ssh.Client, error) {
	dialer := net.Dialer{Timeout: l.Timeouts.Dial}
	conn, err := dialer.DialContext(ctx, "tcp", l.Address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errTransport, err)
	}
	// The library's own timeout covers dialling only; a server that is silent
	// afterwards would block for ever.
	if err := conn.SetDeadline(time.Now().Add(l.Timeouts.Handshake)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	sent := false // whether the password was sent
	config, err := l.config(few, &sent)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	sc, channels, requests, err := ssh.NewClientConn(conn, l.Address, config)
	if err != nil {
		conn.Close()
		return nil, l.classify(err, sent, few)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, sc.Close())
	}
	return ssh.NewClient(sc, channels, requests), nil
}

// config returns the client's configuration. The password is sent once at most, even if
// the server offers several methods. *sent becomes true then.
func (l login) config(few bool, sent *bool) (*ssh.ClientConfig, error) {
	password := func() (string, error) {
		if *sent {
			return "", bmc.ErrRefused
		}
		*sent = true
		return string(l.Password), nil
	}
	config := &ssh.ClientConfig{User: l.User, HostKeyCallback: l.checkHostKey, ClientVersion: "SSH-2.0-drover"}
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

// classify returns the error of a handshake that failed.
func (l login) classify(err error, sent, few bool) error {
	if errors.Is(err, bmc.ErrHostKey) || errors.Is(err, bmc.ErrPins) {
		return err
	}
	if e, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok {
		kind, hint := bmc.ErrUnreachable, "the chassis speaks only old SSH: allow it with --legacy, or legacy: true in the config"
		if l.Legacy {
			hint = "none of them is in Go's library"
		}
		if few && l.Legacy {
			kind = errTransport // the next attempt has the long offer again
		}
		return fmt.Errorf("%w: %s: no common algorithm for %s, it offers %q (%s)", kind, l.Address, e.What, e.RequestedAlgorithms, hint)
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case sent && ok && timeout.Timeout():
		return fmt.Errorf("%w: %s did not answer the login within %s", bmc.ErrUnreachable, l.Address, l.Timeouts.Handshake)
	case sent, l.Password == "" && len(l.Identity) > 0:
		// Some servers hang up instead of refusing. The login counts as refused all
		// the same: sending the password again might lock the account.
		return fmt.Errorf("%w: %s does not let %q in (it was tried once): %w", bmc.ErrRefused, l.Address, l.User, err)
	case ok && timeout.Timeout():
		return fmt.Errorf("%w: %s accepts connections and says nothing for %s", errTransport, l.Address, l.Timeouts.Handshake)
	}
	return fmt.Errorf("%w: %s: %w", errTransport, l.Address, err)
}

// leaveWait bounds the logout.
const leaveWait = 2 * time.Second

// Close ends the connection.
func (c *Console) Close() error {
	if c.shell != nil { // a manager that takes no input must not hold it up
		defer time.AfterFunc(leaveWait, func() { c.client.Close() }).Stop()
		c.shell.leave()
	}
	return c.client.Close()
}

// Run executes one command and returns its output.
func (c *Console) Run(ctx context.Context, command string) (string, error) {
	limit := c.login.Timeouts.Command
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %s did not answer %q within %s", bmc.ErrUnreachable, c.login.Address, command, limit))
	defer cancel()
	if c.shell != nil {
		text, err := c.shell.run(ctx, command)
		if err != nil {
			return "", c.wrap(ctx, err)
		}
		return text, nil
	}
	text, err := c.exec(ctx, command)
	if errors.Is(err, errNoExec) && !c.execs {
		if err := c.openShell(ctx); err != nil {
			return "", c.wrap(ctx, err)
		}
		text, err = c.shell.run(ctx, command)
	}
	if err != nil {
		return "", c.wrap(ctx, err)
	}
	c.execs = c.shell == nil
	return text, nil
}

// wrap returns the error of a command. When ctx has ended, that is its cause. An error
// of package bmc is returned unchanged, and any other is wrapped in a [BrokenError].
func (c *Console) wrap(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, bmc.ErrUnreadable), errors.Is(err, bmc.ErrUnreachable), errors.Is(err, bmc.ErrRefused):
		return err
	}
	return &BrokenError{c.login.Address, err}
}

// openShell switches to the interactive command line. A manager that hangs up on exec
// needs a second login for it. The first login was accepted, so the second one cannot
// lock the account.
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

// BrokenError is a connection that ended in the middle of an answer. It wraps
// [bmc.ErrUnreachable].
type BrokenError struct {
	address string
	err     error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("%v: %s: the connection broke off: %v", bmc.ErrUnreachable, e.address, e.err)
}

// Unwrap returns [bmc.ErrUnreachable] and the cause.
func (e *BrokenError) Unwrap() []error { return []error{bmc.ErrUnreachable, e.err} }
