package power

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/hardware/bmc"
)

// passwordEnv is the environment variable with the password of chassis and iLOs.
// It is never a flag: anyone on the host can read those.
const passwordEnv = "DROVER_ILO_PASSWORD"

// bmcFlags are the flags for the login to management processors.
type bmcFlags struct {
	to                     bmc.Login // user, keys, prompt
	passwordFile, identity string
	knownHosts, knownCerts string
	timeout                time.Duration
	parallel               int
}

func (b *bmcFlags) add(cmd *cobra.Command, ssh bool) {
	f := cmd.Flags()
	f.StringVar(&b.to.User, "user", bmc.DefaultUser, "user to log in as")
	f.StringVar(&b.passwordFile, "password-file", "", "file with the password (else env "+passwordEnv+")")
	f.DurationVar(&b.timeout, "timeout", time.Minute, "longest wait for one answer")
	f.IntVar(&b.parallel, "parallel", 4, "how many are asked at a time")
	f.BoolVar(&b.to.Legacy, "legacy", false, "allow the old SSH and TLS algorithms that old firmware needs")
	f.StringVar(&b.to.TLSPin, "tls-pin", "", "SHA-256 of the certificate; default: pinned at first use")
	f.StringVar(&b.knownCerts, "known-certs", filepath.Join(cli.DefaultState, "known_certs"), "file of pinned certificates")
	_ = cmd.MarkFlagFilename("password-file")
	if !ssh {
		return
	}
	f.StringVar(&b.identity, "identity", "", "private key to log in with, before the password")
	f.StringVar(&b.to.Prompt, "prompt", "", "prompt of the chassis' command line, when it is of several words")
	f.StringVar(&b.to.HostKey, "host-key", "", "fingerprint of the SSH host key, SHA256:...; default: pinned at first use")
	f.StringVar(&b.knownHosts, "known-hosts", filepath.Join(cli.DefaultState, "known_hosts"), "file of pinned SSH host keys")
	_ = cmd.MarkFlagFilename("identity")
}

// base returns the login without a password, which a config file then fills in.
func (b *bmcFlags) base(cmd *cobra.Command) func() (bmc.Login, error) {
	return func() (l bmc.Login, err error) {
		if b.parallel < 1 || b.parallel > 64 {
			return l, fmt.Errorf("--parallel %d: want 1 to 64", b.parallel)
		}
		if b.timeout < time.Second || b.timeout > time.Hour {
			return l, fmt.Errorf("--timeout %s: want 1s to 1h", b.timeout)
		}
		l = b.to
		if b.identity != "" {
			if l.Identity, err = os.ReadFile(b.identity); err != nil {
				return l, fmt.Errorf("--identity: %w", err)
			}
		}
		pinned := func(address, print string) {
			cli.Note(cmd.ErrOrStderr(), address, "pinned "+print+" at first use")
		}
		broken := func(place string) {
			cli.Note(cmd.ErrOrStderr(), place, "ignoring a malformed line of pinned keys: remove it")
		}
		l.HostKeys = &bmc.Pins{Path: b.knownHosts, OnNew: pinned, OnBroken: broken}
		l.Certs = &bmc.Pins{Path: b.knownCerts, OnNew: pinned, OnBroken: broken}
		l.Timeouts = bmc.Timeouts{Dial: min(b.timeout, 10*time.Second), Handshake: min(b.timeout, 30*time.Second), Command: b.timeout}
		return l, nil
	}
}

// login returns the login with the password of the flags or the environment.
func (b *bmcFlags) login(cmd *cobra.Command) func() (bmc.Login, error) {
	return func() (bmc.Login, error) {
		l, err := b.base(cmd)()
		if err != nil {
			return l, err
		}
		if b.passwordFile != "" {
			if l.Password, err = bmc.ReadPassword(b.passwordFile); err != nil {
				err = fmt.Errorf("--password-file: %w", err)
			}
			return l, err
		}
		if l.Password = bmc.Secret(os.Getenv(passwordEnv)); l.Password == "" && b.identity == "" {
			return l, fmt.Errorf("no password: name a file with --password-file, or set %s", passwordEnv)
		}
		return l, nil
	}
}
