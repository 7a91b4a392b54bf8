package redfish

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"strings"

	"drover/hardware/bmc"
)

// checkCert compares the certificate of a connection with the pin of the login, or else
// with the file of pins, which has lines "host:port sha256:...".
func (s *Client) checkCert(address string, state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return fmt.Errorf("%w: %s shows no certificate", bmc.ErrHostKey, address)
	}
	sum := sha256.Sum256(state.PeerCertificates[0].Raw)
	got := "sha256:" + hex.EncodeToString(sum[:])
	if s.TLSPin != "" {
		if want := "sha256:" + strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s.TLSPin), "sha256:"), ":", ""); want != got {
			return fmt.Errorf("%w: the certificate of %s is %s, want %s", bmc.ErrHostKey, address, got, want)
		}
		return nil
	}
	other, err := s.Certs.Check(address, got, address+" "+got, func() (known []string, err error) {
		return pinned(s.Certs, address)
	})
	if other != "" {
		return fmt.Errorf("%w: the certificate of %s is %s, and %s has %s (if the certificate was renewed, remove its line from that file)",
			bmc.ErrHostKey, address, got, s.Certs.Path, other)
	}
	return err
}

// pinned returns the fingerprints of an address from a file of pins. A broken line is an error for
// its own address alone, if that has no other line: any certificate would be pinned in its place.
func pinned(pins *bmc.Pins, address string) (known []string, err error) {
	data, err := pins.Read()
	if err != nil {
		return nil, err
	}
	var broken error
	for no, text := range strings.Split(string(data), "\n") {
		f := strings.Fields(text)
		switch {
		case len(f) == 0 || strings.HasPrefix(f[0], "#"):
		case len(f) == 2 && isFingerprint(f[1]):
			if f[0] == address {
				known = append(known, f[1])
			}
		case f[0] == address:
			broken = fmt.Errorf("%s:%d: not an address and the fingerprint of a certificate (remove the line to pin that of %s anew)", pins.Path, no+1, address)
		default:
			pins.Skip(no+1, text)
		}
	}
	if len(known) > 0 {
		return known, nil
	}
	return nil, broken
}

// isFingerprint reports whether a text is sha256: and 64 hex digits.
func isFingerprint(text string) bool {
	sum, ok := strings.CutPrefix(text, "sha256:")
	b, err := hex.DecodeString(sum)
	return ok && err == nil && len(b) == sha256.Size
}
