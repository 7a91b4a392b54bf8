package bmc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/resolve"
)

// The failures of a whole management processor. Test with errors.Is.
var (
	ErrRefused     = errors.New("login refused")
	ErrUnreachable = errors.New("unreachable")
	ErrHostKey     = errors.New("host key or certificate is not the one that is known")
	ErrUnreadable  = errors.New("not understood")
	// ErrRejected reports a command that the processor understood and did not execute.
	ErrRejected = errors.New("rejected")

	// ErrPins reports pinned keys that cannot be read or written: the key cannot be checked.
	ErrPins = errors.New("pinned keys")
)

// MaxAnswer bounds an answer, in bytes. A full chassis of 180 nodes answers
// with 40 kB.
const MaxAnswer = 1 << 20

// MaxCards bounds the network cards of one machine.
const MaxCards = 128

// DefaultUser is the factory-set user of management processors.
const DefaultUser = "Administrator"

// Login has the address and the credentials of a management processor.
type Login struct {
	Address  string // host or host:port; over HTTPS also a URL
	User     string // empty: requests have no login, over HTTPS only
	Password Secret
	Identity []byte // a private key in PEM, tried before the password, over SSH only

	HostKey  string // SSH: SHA256:...; empty: as HostKeys has it
	HostKeys *Pins  // SSH: pins at first use, in the form of known_hosts
	TLSPin   string // HTTPS: sha256:..., of the certificate; empty: as Certs has it
	Certs    *Pins  // HTTPS: pins at first use; nil: a certificate that this host trusts

	// Legacy allows the algorithms of old firmware: in SSH, and TLS 1.0 with RSA
	// key exchange.
	Legacy bool

	// Prompt is the prompt of an interactive command line, unless it is one word
	// and > or ->, such as hpiLO->.
	Prompt string

	Timeouts Timeouts
}

// Timeouts bound the duration of each step. Zero fields have the defaults.
type Timeouts struct {
	Dial      time.Duration // until TCP is connected; default 10s
	Handshake time.Duration // until the login is answered; default 30s, since some need 5s
	Command   time.Duration // until a command is answered; default 60s
	Backoff   time.Duration // before the second attempt to connect, then doubled; default 1s
	Inventory time.Duration // until a whole inventory is read; default 10m
}

// WithDefaults returns t with its zero fields filled in.
func (t Timeouts) WithDefaults() Timeouts {
	return Timeouts{
		Dial: cmp.Or(t.Dial, 10*time.Second), Handshake: cmp.Or(t.Handshake, 30*time.Second),
		Command: cmp.Or(t.Command, time.Minute), Backoff: cmp.Or(t.Backoff, time.Second),
		Inventory: cmp.Or(t.Inventory, 10*time.Minute),
	}
}

// ReadInventory calls read with a context that ends when a whole inventory takes too
// long: each of its answers may be in time, and there may be a thousand of them. The
// error then wraps [ErrUnreachable].
func ReadInventory(ctx context.Context, l Login, read func(ctx context.Context) error) error {
	limit := l.Timeouts.WithDefaults().Inventory
	late := fmt.Errorf("%w: %s: its inventory was not complete within %s", ErrUnreachable, l.Address, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	err := read(ctx)
	if err != nil && errors.Is(context.Cause(ctx), late) {
		return late
	}
	return err
}

// ForChassis returns l with the login of a chassis of the config. Pins, timeouts
// and the private key stay those of l.
func (l Login) ForChassis(farm *resolve.Farm, c pools.Chassis) (Login, error) {
	l.Address, l.User, l.HostKey, l.TLSPin, l.Legacy, l.Prompt = c.Address, cmp.Or(c.User, DefaultUser), c.HostKey, c.TLSPin, c.Legacy, c.Prompt
	return l, l.readPassword(farm.Path(c.PasswordFile))
}

// ForNode is [Login.ForChassis] for a machine with a BMC of its own.
func (l Login) ForNode(farm *resolve.Farm, p *pools.NodePower) (Login, error) {
	l.Address, l.User, l.TLSPin, l.Legacy = p.Address, cmp.Or(p.User, DefaultUser), p.TLSPin, p.Legacy
	return l, l.readPassword(farm.Path(p.PasswordFile))
}

func (l *Login) readPassword(file string) (err error) {
	if l.Password, err = ReadPassword(file); err != nil {
		return fmt.Errorf("passwordFile: %w", err)
	}
	return nil
}

// maxPassword bounds a password file, in bytes.
const maxPassword = 4096

// ReadPassword returns the only line of a file. A file with several lines is an error.
func ReadPassword(file string) (Secret, error) {
	data, err := atomicfile.Read(file, maxPassword)
	text := bytes.TrimRight(data, "\r\n")
	switch {
	case err != nil:
		return "", err
	case len(text) == 0 || bytes.ContainsAny(text, "\r\n\x00"):
		return "", errors.New(file + " does not hold a password: want one line")
	}
	return Secret(text), nil
}
