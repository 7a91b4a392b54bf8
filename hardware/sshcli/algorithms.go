package sshcli

import (
	"slices"

	"golang.org/x/crypto/ssh"
)

// algorithms sets the algorithms that the client offers. Firmware of a Moonshot chassis
// supports only group14-sha1 or group1-sha1, CBC ciphers, hmac-sha1 and ssh-rsa. These
// are insecure, so they are offered with Legacy only.
//
// With few, the offer has few names: mpSSH, the server of old iLOs, is reported to hang
// up on a long list.
func (l login) algorithms(config *ssh.ClientConfig, few bool) {
	good, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	hostKeys := good.HostKeys
	switch {
	case l.Legacy && few:
		config.KeyExchanges = []string{ssh.InsecureKeyExchangeDH14SHA1, ssh.InsecureKeyExchangeDH1SHA1}
		config.Ciphers = []string{ssh.InsecureCipherAES128CBC, ssh.InsecureCipherTripleDESCBC}
		config.MACs = []string{ssh.HMACSHA1}
		hostKeys = []string{ssh.KeyAlgoRSA, ssh.InsecureKeyAlgoDSA} //nolint:staticcheck // some iLOs have no other
	case l.Legacy:
		config.KeyExchanges = slices.Concat(good.KeyExchanges, old.KeyExchanges)
		config.Ciphers = slices.Concat(good.Ciphers, old.Ciphers)
		config.MACs = slices.Concat(good.MACs, old.MACs)
		hostKeys = slices.Concat(good.HostKeys, old.HostKeys)
	}
	config.HostKeyAlgorithms = hostKeys
	if l.HostKeys == nil || l.HostKey != "" {
		return
	}
	// A server with several keys must show the one that was pinned.
	known, err := pinned(l.HostKeys, l.Address)
	if err != nil || len(known) == 0 {
		return
	}
	config.HostKeyAlgorithms = slices.DeleteFunc(slices.Clone(hostKeys), func(name string) bool {
		return !slices.ContainsFunc(known, func(k ssh.PublicKey) bool { return signs(k.Type(), name) })
	})
	if len(config.HostKeyAlgorithms) == 0 {
		config.HostKeyAlgorithms = hostKeys // checkHostKey returns a better error
	}
}

// signs reports whether a key of that type can sign by an algorithm.
func signs(keyType, algorithm string) bool {
	if keyType == ssh.KeyAlgoRSA {
		return slices.Contains([]string{ssh.KeyAlgoRSA, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512}, algorithm)
	}
	return keyType == algorithm
}
