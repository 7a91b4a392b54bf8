package redfish

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"strings"

	"drover/pools/hardware/bmc"
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
		data, err := s.Certs.Read()
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			if f := strings.Fields(lines.Text()); len(f) == 2 && f[0] == address {
				known = append(known, f[1])
			}
		}
		return known, err
	})
	if other != "" {
		return fmt.Errorf("%w: the certificate of %s is %s, and %s has %s (if the certificate was renewed, remove its line from that file)",
			bmc.ErrHostKey, address, got, s.Certs.Path, other)
	}
	return err
}
