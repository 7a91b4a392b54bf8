// Package cmdline reads the settings of drover-init and of kernel modules from the
// kernel command line. Every mistake is reported, with the key and what is expected.
package cmdline

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"drover/node/kmod"
	"drover/pools"
)

// The limits and the default of drover.timeout.
const (
	DefaultTimeout = 900 * time.Second
	minTimeout     = 30 * time.Second
	maxTimeout     = 24 * time.Hour
)

// Args are the settings of this boot.
type Args struct {
	URL     *url.URL      // base of the server's node-facing listener, path without a slash at its end
	MAC     pools.MAC     // of the boot network card
	Nonce   string        // secret: identifies this boot
	Secure  *url.URL      // base of its HTTPS listener, likewise; nil: none
	Also    []*url.URL    // bases of other servers that go on with the boot when that of URL does not answer
	Pin     []byte        // SHA-256 of that listener's key; nil: none
	Digest  [32]byte      // sha256 of the root image
	Root    string        // path of the root image below URL
	Timeout time.Duration // since the kernel started, until a reboot
	Rescue  bool          // stop in a shell before the config is fetched
	Shell   bool          // after an error wait for the timeout, so that the screen can be read
	Debug   pools.DebugShell
	Modules kmod.Args
}

// Parse reads a kernel command line. Of an argument given twice the last counts, as for
// the kernel. The error has every mistake. The result has the valid settings even
// then, so that the timeout is known.
func Parse(cmdline string) (Args, error) {
	a := Args{Timeout: DefaultTimeout}
	given := map[string]string{}
	for _, w := range splitArgs(cmdline) {
		key, value, hasValue := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(key, "drover."), key == "BOOTIF":
			given[key] = value
		case key == "modprobe.blacklist":
			a.Modules.Block(value)
		case hasValue:
			a.Modules.Option(key, value)
		}
	}
	var errs []error
	for _, read := range []func(map[string]string) error{
		a.readURL, a.readAlso, a.readSecure, a.readMAC, a.readNonce, a.readImage, a.readTimeout,
	} {
		if err := read(given); err != nil {
			errs = append(errs, err)
		}
	}
	a.Shell = given["drover.shell"] == "1"
	a.Rescue = given["drover.rescue"] == "1"
	a.Debug = pools.DebugShell(given["drover.debug"])
	return a, errors.Join(errs...)
}

func (a *Args) readURL(given map[string]string) error {
	const example = "want for instance drover.url=http://10.28.0.2:80"
	s := given["drover.url"]
	if s == "" {
		return errors.New("drover.url is missing from the kernel command line, " + example)
	}
	u, err := serverURL("drover.url", s, example)
	a.URL = u
	return err
}

// maxAlso bounds drover.also.
const maxAlso = 8

// readAlso reads the other servers. A wrong one is a mistake of the script: it would be missed
// when it is needed.
func (a *Args) readAlso(given map[string]string) error {
	if given["drover.also"] == "" {
		return nil
	}
	all := strings.Split(given["drover.also"], ",")
	if len(all) > maxAlso {
		return fmt.Errorf("drover.also has %d servers, more than %d", len(all), maxAlso)
	}
	for _, text := range all {
		s, err := pools.ParseServer(text)
		if err != nil {
			return fmt.Errorf("drover.also: %w", err)
		}
		a.Also = append(a.Also, &url.URL{Scheme: "http", Host: pools.ServerText(s)})
	}
	return nil
}

// readSecure reads the base of the HTTPS listener and the pin of its key. One without
// the other is a mistake: falling back to plain HTTP would help an attacker.
func (a *Args) readSecure(given map[string]string) error {
	const example = "want for instance drover.https=https://10.28.0.2:8444"
	s, p := given["drover.https"], given["drover.pin"]
	if s == "" && p == "" {
		return nil
	}
	var errs []error
	u, err := serverURL("drover.https", s, example)
	switch {
	case err != nil:
		errs = append(errs, err)
	case u.Scheme != "https":
		errs = append(errs, fmt.Errorf("drover.https=%q is not by TLS, %s", s, example))
	}
	digest, ok := strings.CutPrefix(p, "sha256:")
	pin, err := hex.DecodeString(digest)
	if !ok || err != nil || len(pin) != 32 {
		errs = append(errs, fmt.Errorf("drover.pin=%q is not sha256: and 64 hex digits", p))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	a.Secure, a.Pin = u, pin
	return nil
}

// serverURL reads the base of a listener.
func serverURL(key, s, example string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w, %s", key, err, example)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("%s=%q is not the URL of a server, %s", key, s, example)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%s=%q has more than a host and a path, %s", key, s, example)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

func (a *Args) readMAC(given map[string]string) error {
	key, s := "drover.mac", given["drover.mac"]
	if s == "" {
		// PXE loaders put the hardware type before the address: 01 is Ethernet.
		key, s = "BOOTIF", strings.TrimPrefix(given["BOOTIF"], "01-")
	}
	if s == "" {
		return errors.New("drover.mac and BOOTIF are missing from the kernel command line: no way to tell the boot network card")
	}
	mac, err := pools.ParseMAC(s)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	a.MAC = mac
	return nil
}

// readNonce reads the nonce. Its error does not quote it: the nonce is a secret.
func (a *Args) readNonce(given map[string]string) error {
	s := given["drover.nonce"]
	if s == "" {
		return errors.New("drover.nonce is missing from the kernel command line")
	}
	if _, err := hex.DecodeString(s); err != nil || len(s) < 16 || len(s) > 256 {
		return fmt.Errorf("drover.nonce (%d characters) is not 16 to 256 hex digits", len(s))
	}
	a.Nonce = s
	return nil
}

func (a *Args) readImage(given map[string]string) error {
	var errs []error
	s, ok := strings.CutPrefix(given["drover.image"], "sha256:")
	sum, err := hex.DecodeString(s)
	if !ok || err != nil || copy(a.Digest[:], sum) != len(a.Digest) || len(sum) != len(a.Digest) {
		errs = append(errs, fmt.Errorf("drover.image=%q is not sha256: and 64 hex digits", given["drover.image"]))
	}
	root := given["drover.root"]
	if !strings.HasPrefix(root, "/") || path.Clean(root) != root || root == "/" || strings.ContainsAny(root, "?#%\\") {
		errs = append(errs, fmt.Errorf("drover.root=%q is not a path such as /images/NAME/DIGEST/root.squashfs", root))
	} else {
		a.Root = root
	}
	return errors.Join(errs...)
}

func (a *Args) readTimeout(given map[string]string) error {
	s, ok := given["drover.timeout"]
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(s)
	d := time.Duration(n) * time.Second
	if err != nil || n < 0 || n > int(maxTimeout/time.Second) || d < minTimeout {
		return fmt.Errorf("drover.timeout=%q is not a number of seconds from %.0f to %.0f", s, minTimeout.Seconds(), maxTimeout.Seconds())
	}
	a.Timeout = d
	return nil
}

// splitArgs splits a command line as the kernel does (lib/cmdline.c, next_arg): at white
// space outside of double quotes. It removes quotes around a word or around its value,
// and everything after "--", which is for init.
func splitArgs(s string) []string {
	var words []string
	for s = strings.TrimLeft(s, " \t\r\n"); s != ""; s = strings.TrimLeft(s, " \t\r\n") {
		quoted, end := false, len(s)
		for i, c := range []byte(s) {
			if c == '"' {
				quoted = !quoted
			}
			if !quoted && strings.IndexByte(" \t\r\n", c) >= 0 {
				end = i
				break
			}
		}
		word := s[:end]
		s = s[end:]
		if word == "--" {
			break
		}
		words = append(words, unquoteArg(word))
	}
	return words
}

func unquoteArg(word string) string {
	if inner, ok := strings.CutPrefix(word, `"`); ok {
		return strings.TrimSuffix(inner, `"`)
	}
	key, value, ok := strings.Cut(word, "=")
	if inner, quoted := strings.CutPrefix(value, `"`); ok && quoted {
		return key + "=" + strings.TrimSuffix(inner, `"`)
	}
	return word
}
