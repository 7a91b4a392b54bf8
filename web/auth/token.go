package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"

	"drover/pools/atomicfile"
)

// minToken is how many characters an operator's own token must have. The
// token that LoadToken makes has 64, of four bits each.
const minToken = 32

// Token recognizes the server's own token by its hash; it does not hold the token. The
// zero Token recognizes none.
type Token struct {
	hash digest
	set  bool
}

// NewToken returns the Token for a secret.
func NewToken(secret string) Token { return Token{sha256.Sum256([]byte(secret)), true} }

// matches reports whether hash is that of the token. The time it takes does not depend
// on how much of it is right.
func (t Token) matches(hash digest) bool {
	return t.set && subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1
}

// LoadToken reads the API token from the file at path. When there is none it
// makes a token of 256 random bits, in a file that its owner alone can read,
// and isNew is true.
func LoadToken(path string) (t Token, isNew bool, err error) {
	data, isNew, err := atomicfile.ReadOrMake(path, func() ([]byte, error) {
		return []byte(newSecret() + "\n"), nil
	})
	secret := strings.TrimSpace(string(data))
	if err == nil && len(secret) < minToken {
		err = fmt.Errorf("%s holds %d characters, want %d at least (remove it, and the next start makes a new one)", path, len(secret), minToken)
	}
	if err != nil {
		return Token{}, false, fmt.Errorf("API token: %w", err)
	}
	return NewToken(secret), isNew, nil
}
