package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// minToken is how many characters an operator's own token must have. The
// token that LoadToken makes has 64, of four bits each.
const minToken = 32

// Token recognizes the API token by its hash; it does not hold the token. The zero
// Token recognizes none.
type Token struct {
	hash [sha256.Size]byte
	set  bool
}

// NewToken returns the Token for a secret.
func NewToken(secret string) Token { return Token{sha256.Sum256([]byte(secret)), true} }

// matches reports whether secret is the token. The time it takes does not depend
// on how much of it is right.
func (t Token) matches(secret string) bool {
	hash := sha256.Sum256([]byte(secret))
	return t.set && subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1
}

// LoadToken reads the API token from the file at path. When there is none it
// makes a token of 256 random bits, in a file that its owner alone can read,
// and isNew is true.
func LoadToken(path string) (t Token, isNew bool, err error) {
	secret, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret, err = makeToken(path)
		isNew = err == nil
	}
	if err != nil {
		return Token{}, false, fmt.Errorf("API token: %w", err)
	}
	return NewToken(secret), isNew, nil
}

func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if mode := info.Mode(); !mode.IsRegular() || mode.Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s has mode %s: others can read it (make a new one: remove it and restart; or chmod 600)", path, mode)
	}
	b, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(b))
	if len(secret) < minToken {
		return "", fmt.Errorf("%s holds %d characters, want %d at least (remove it, and the next start makes a new one)", path, len(secret), minToken)
	}
	return secret, nil
}

// makeToken writes a new token beside path and then moves it there, so that a
// crash leaves no half of one.
func makeToken(path string) (string, error) {
	random := make([]byte, 32)
	rand.Read(random) // never fails
	secret := hex.EncodeToString(random)
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(secret + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return secret, nil
}
