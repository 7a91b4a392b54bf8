package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/server"
	"drover/pools"
	"drover/pools/ilo"
)

// passwordEnv is where the password of chassis and iLOs is looked for. It is
// never a flag: anyone on the host can read those.
const passwordEnv = "DROVER_ILO_PASSWORD"

// bmcFlags say how to log in to management processors.
type bmcFlags struct {
	user, passwordFile, identity string
	legacy                       bool
	hostKey, knownHosts, prompt  string
	tlsPin, knownCerts           string
	timeout                      time.Duration
	parallel                     int
}

func (b *bmcFlags) add(cmd *cobra.Command, ssh bool) {
	f := cmd.Flags()
	f.StringVar(&b.user, "user", server.DefaultUser, "user to log in as")
	f.StringVar(&b.passwordFile, "password-file", "", "file with the password (else env "+passwordEnv+")")
	f.DurationVar(&b.timeout, "timeout", time.Minute, "longest wait for one answer")
	f.IntVar(&b.parallel, "parallel", 4, "how many are asked at a time")
	f.BoolVar(&b.legacy, "legacy", false, "allow the old SSH and TLS algorithms that old firmware needs")
	f.StringVar(&b.tlsPin, "tls-pin", "", "SHA-256 of the certificate; default: pinned at first use")
	f.StringVar(&b.knownCerts, "known-certs", filepath.Join(defaultState, "known_certs"), "file of pinned certificates")
	_ = cmd.MarkFlagFilename("password-file")
	if !ssh {
		return
	}
	f.StringVar(&b.identity, "identity", "", "private key to log in with, before the password")
	f.StringVar(&b.prompt, "prompt", "", "prompt of the chassis' command line, when it is of several words")
	f.StringVar(&b.hostKey, "host-key", "", "fingerprint of the SSH host key, SHA256:...; default: pinned at first use")
	f.StringVar(&b.knownHosts, "known-hosts", filepath.Join(defaultState, "known_hosts"), "file of pinned SSH host keys")
	_ = cmd.MarkFlagFilename("identity")
}

// of takes the login of a chassis of the config. Pins, time-outs and a private
// key stay those of the flags.
func (b *bmcFlags) of(farm *pools.Farm, c pools.Chassis) {
	b.user, b.passwordFile, b.legacy = c.User, farm.Path(c.PasswordFile), c.Legacy
	b.hostKey, b.prompt, b.tlsPin = c.HostKey, c.Prompt, c.TLSPin
}

// password reads the password from its file or the environment.
func (b *bmcFlags) password() (ilo.Secret, error) {
	if b.passwordFile == "" {
		if s := os.Getenv(passwordEnv); s != "" {
			return ilo.Secret(s), nil
		}
		if b.identity != "" {
			return "", nil
		}
		return "", fmt.Errorf("no password: name a file with --password-file, or set %s", passwordEnv)
	}
	s, err := server.ReadPassword(b.passwordFile)
	if err != nil {
		return "", fmt.Errorf("--password-file: %w", err)
	}
	return s, nil
}

// bmcs opens management processors as the flags say.
type bmcs struct {
	flags    *bmcFlags
	password ilo.Secret
	identity []byte
	hosts    *ilo.HostKeys
	certs    *ilo.CertPins
}

// open reads what the flags name. say is told of what is pinned.
func (b *bmcFlags) open(say func(format string, args ...any)) (*bmcs, error) {
	password, err := b.password()
	if err != nil {
		return nil, err
	}
	if b.parallel < 1 || b.parallel > 64 {
		return nil, fmt.Errorf("--parallel %d: want 1 to 64", b.parallel)
	}
	if b.timeout < time.Second || b.timeout > time.Hour {
		return nil, fmt.Errorf("--timeout %s: want 1s to 1h", b.timeout)
	}
	out := &bmcs{flags: b, password: password}
	if b.identity != "" {
		if out.identity, err = os.ReadFile(b.identity); err != nil {
			return nil, fmt.Errorf("--identity: %w", err)
		}
	}
	pinned := func(address, print string) { say("%s: pinned %s at first use", address, print) }
	out.hosts = &ilo.HostKeys{Path: b.knownHosts, OnNew: pinned}
	out.certs = &ilo.CertPins{Path: b.knownCerts, OnNew: pinned}
	return out, nil
}

func (b *bmcs) timeouts() ilo.Timeouts {
	t := b.flags.timeout
	return ilo.Timeouts{Dial: min(t, 10*time.Second), Handshake: min(t, 30*time.Second), Command: t}
}

// login is for SSH.
func (b *bmcs) login(address string) ilo.Login {
	return ilo.Login{
		Address: server.WithPort(address, "22"), User: b.flags.user, Password: b.password, Identity: b.identity,
		HostKey: b.flags.hostKey, HostKeys: b.hosts, Legacy: b.flags.legacy, Prompt: b.flags.prompt, Timeouts: b.timeouts(),
	}
}

// site is for HTTPS. Close it.
func (b *bmcs) site(address string) (*ilo.Site, error) {
	s := &ilo.Site{
		Address: address, User: b.flags.user, Password: b.password,
		TLSPin: b.flags.tlsPin, TLSPins: b.certs, Legacy: b.flags.legacy, Timeouts: b.timeouts(),
	}
	return s, s.Open()
}

// chassisAt is a chassis on the command line: [NAME=]ADDRESS, where the address
// is ssh://host:port, https://host:port or a host.
type chassisAt struct {
	name, scheme, address string
}

func parseChassis(text string) (chassisAt, error) {
	name, rest, named := strings.Cut(text, "=")
	if !named {
		name, rest = "", text
	}
	scheme, address, ok := strings.Cut(rest, "://")
	if !ok {
		scheme, address = "", rest
	}
	u, err := url.Parse("x://" + address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "":
		return chassisAt{}, fmt.Errorf("--chassis %q: want [NAME=]ADDRESS, such as m1=ilo-m1.example.org or m1=ssh://10.1.2.3:22", text)
	case scheme != "" && scheme != "ssh" && scheme != "https":
		return chassisAt{}, fmt.Errorf("--chassis %q: want ssh:// or https://", text)
	case named && name == "":
		return chassisAt{}, fmt.Errorf("--chassis %q: the name is missing", text)
	}
	if name == "" {
		name, _, _ = strings.Cut(u.Hostname(), ".")
		if net.ParseIP(u.Hostname()) != nil {
			return chassisAt{}, fmt.Errorf("--chassis %q: an address has no name: write NAME=%s", text, rest)
		}
	}
	return chassisAt{name, scheme, u.Host}, nil
}

// via is how the chassis is asked: as the flag says, else as the address does.
func (c chassisAt) via(flag string) string {
	if flag != "auto" {
		return flag
	}
	return cmp.Or(map[string]string{"ssh": "ssh", "https": "rest"}[c.scheme], "ssh")
}

// inParallel calls do for 0 to n-1, so many at a time, and waits for all.
func inParallel(ctx context.Context, n, atATime int, do func(ctx context.Context, i int)) {
	slots := make(chan struct{}, atATime)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(ctx, i)
		})
	}
	all.Wait()
}

// errUsage marks a mistake on the command line of import.
func usage(err error) error { return &exitError{importUsage, err} }

var errNoChassis = errors.New("--chassis or --from-file is missing: which chassis?")
