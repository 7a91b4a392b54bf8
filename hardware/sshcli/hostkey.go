package sshcli

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"drover/hardware/bmc"
)

// pinned returns the keys of an address from a file in the format of OpenSSH's
// known_hosts. A broken line is an error for its own address alone, if that has no other line:
// any key would be pinned in its place.
func pinned(pins *bmc.Pins, address string) ([]ssh.PublicKey, error) {
	data, err := pins.Read()
	if err != nil {
		return nil, err
	}
	want := knownhosts.Normalize(address)
	var keys []ssh.PublicKey
	var broken error
	for no, text := range bytes.Split(data, []byte("\n")) {
		if text = bytes.TrimSpace(text); len(text) == 0 || text[0] == '#' {
			continue
		}
		marker, hosts, key, _, _, err := ssh.ParseKnownHosts(text)
		switch {
		case err != nil && slices.Contains(strings.Split(string(bytes.Fields(text)[0]), ","), want):
			broken = fmt.Errorf("%s:%d: no line of known hosts: %w (remove it to pin the key of %s anew)", pins.Path, no+1, err, address)
		case err != nil:
			pins.Skip(no+1, string(text))
		case marker == "" && slices.Contains(hosts, want):
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		return keys, nil
	}
	return nil, broken
}

// checkHostKey compares the key of a connection with the fingerprint of the login, or
// else with the file of pins.
func (l login) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	got := ssh.FingerprintSHA256(key)
	switch {
	case l.HostKey != "" && strings.TrimRight(l.HostKey, "=") != got:
		return fmt.Errorf("%w: %s has %s, want %s", bmc.ErrHostKey, l.Address, got, l.HostKey)
	case l.HostKey != "":
		return nil
	case l.HostKeys == nil:
		return fmt.Errorf("%w: there is neither a fingerprint nor a file to pin the key of %s in", bmc.ErrHostKey, l.Address)
	}
	other, err := l.HostKeys.Check(l.Address, got, knownhosts.Line([]string{l.Address}, key), func() (known []string, err error) {
		keys, err := pinned(l.HostKeys, l.Address)
		for _, k := range keys {
			known = append(known, ssh.FingerprintSHA256(k))
		}
		return known, err
	})
	if other != "" {
		return fmt.Errorf("%w: %s has %s, and %s has %s (if the chassis was exchanged or reset, remove its line from that file)",
			bmc.ErrHostKey, l.Address, got, l.HostKeys.Path, other)
	}
	return err
}
