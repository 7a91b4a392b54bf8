package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// The keys of the Secret of the keys of ServiceAccounts.
const (
	AccountSigner = "sa.key"
	AccountPublic = "sa.pub"
)

// ServiceAccountKeys makes the key that signs the tokens of ServiceAccounts and returns
// the data of its Secret. AccountPublic verifies them, and may have several keys.
func ServiceAccountKeys() (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	private, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return map[string][]byte{AccountSigner: private, AccountPublic: public}, nil
}

// CheckServiceAccountKeys returns an error if the first public key is not that of the
// signing key. Errors quote no key.
func CheckServiceAccountKeys(data map[string][]byte) error {
	key, err := decodeKey(data[AccountSigner])
	if err != nil {
		return fmt.Errorf("%s: %w", AccountSigner, err)
	}
	for text := data[AccountPublic]; ; {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return fmt.Errorf("%s: does not have the public key of %s", AccountPublic, AccountSigner)
		}
		if public, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil && key.PublicKey.Equal(public) {
			return nil
		}
	}
}
