package ilosim

import (
	"crypto/dsa" //nolint:staticcheck // old chassis have such host keys, and only such
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"math/big"

	"golang.org/x/crypto/ssh"
)

// Profile is the set of algorithms that an SSH server offers.
type Profile string

// The profiles. Firmware of a Moonshot chassis offers those of Legacy14 or
// Legacy1; ssh-dss is known from stand-alone iLOs.
const (
	Modern      Profile = "modern"
	Legacy14    Profile = "legacy14" // diffie-hellman-group14-sha1, CBC ciphers, ssh-rsa with 1024 bits
	Legacy1     Profile = "legacy1"  // diffie-hellman-group1-sha1
	DSS         Profile = "dss"      // host key ssh-dss
	Interactive Profile = "kbdint"   // modern, and login by keyboard-interactive only
)

// Profiles returns all profiles.
func Profiles() []Profile { return []Profile{Modern, Legacy14, Legacy1, DSS, Interactive} }

// hostKey makes a new key of the kind that the profile has.
func (p Profile) hostKey() (ssh.Signer, error) {
	switch p {
	case Legacy14, Legacy1:
		key, err := rsa.GenerateKey(rand.Reader, 1024)
		if err != nil {
			return nil, err
		}
		signer, err := ssh.NewSignerFromKey(key)
		if err != nil {
			return nil, err
		}
		return ssh.NewSignerWithAlgorithms(signer.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	case DSS:
		key := &dsa.PrivateKey{PublicKey: dsa.PublicKey{Parameters: dsaParameters()}}
		if err := dsa.GenerateKey(key, rand.Reader); err != nil {
			return nil, err
		}
		return ssh.NewSignerFromKey(key)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

// algorithms returns the algorithms of the connection.
func (p Profile) algorithms() ssh.Config {
	old := ssh.Config{
		Ciphers: []string{ssh.InsecureCipherAES128CBC, ssh.InsecureCipherTripleDESCBC},
		MACs:    []string{ssh.HMACSHA1},
	}
	switch p {
	case Legacy14, DSS:
		old.KeyExchanges = []string{ssh.InsecureKeyExchangeDH14SHA1}
	case Legacy1:
		old.KeyExchanges = []string{ssh.InsecureKeyExchangeDH1SHA1}
	default:
		return ssh.Config{}
	}
	return old
}

// dsaParameters returns a group of 1024 bits; generating one takes seconds.
func dsaParameters() dsa.Parameters {
	number := func(hex string) *big.Int {
		n, _ := new(big.Int).SetString(hex, 16)
		return n
	}
	return dsa.Parameters{
		P: number("945be603a4b1720a181536468bf73a9e4abf36dc388487dc651234e13baa11ca125abb82ca05097d50651187ef98e57d340408c1b2e34d04010191939945777a" +
			"d72551ea183fababfba193d3a9b62d7371c5236ede20069cb8484801b9d6795cee645eea5e0f39214b3cb4cbda667de96ea6c0c8ba660e3ba3f25ab42d1b1fb5"),
		Q: number("e5bb109b28fe2070276f36255b89b39ac11d4d35"),
		G: number("1faaa6b9f484dd08708694248d569515ca175c557def32f9b6be030377ce9ad020789433d435454e53301394fe6d98ab861f5923561b53e2334bc3e22631f1f2" +
			"d356ba21556634deb57a79e3760313177064856114ea915b09292c683c5a0cb3c402ed636f03368bec620de1bb713a56f7fd2b4d6c2cddff4645281acc4363ab"),
	}
}
