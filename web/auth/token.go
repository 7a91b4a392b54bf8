package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"

	"drover/internal/atomicfile"
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

// The form of a token that LoadToken makes. Its last part is a checksum. One wrong byte leaves the
// prefix or the rest, and no other token has either.
const tokenPrefix = "drover_"

var (
	tokenForm = regexp.MustCompile(`^drover_([0-9a-f]{64})_([0-9a-f]{8})\r?\n?$`)
	tokenRest = regexp.MustCompile(`[0-9a-f]{64}_[0-9a-f]{8}`)
	hexDigit  = regexp.MustCompile(`[0-9a-f]`)
)

// LoadToken reads the API token from the file at path. When there is none it
// makes a token of 256 random bits, in a file that its owner alone can read,
// and isNew is true.
func LoadToken(path string) (t Token, isNew bool, err error) {
	data, isNew, err := atomicfile.ReadOrMake(path, func() ([]byte, error) {
		secret := newSecret()
		return fmt.Appendf(nil, "%s%s_%s\n", tokenPrefix, secret, tokenSum(secret)), nil
	})
	secret := strings.TrimSpace(string(data))
	if err == nil {
		if err = checkToken(string(data), secret); err != nil {
			err = fmt.Errorf("%s %w (restore it, or remove it, and the next start makes a new one)", path, err)
		}
	}
	if err != nil {
		return Token{}, false, fmt.Errorf("API token: %w", err)
	}
	return NewToken(secret), isNew, nil
}

func tokenSum(secret string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(secret))) }

// checkToken returns an error for the text of a file, and the secret in it, if no client can use
// it, or if it is not as drover has written it.
func checkToken(text, secret string) error {
	if len(secret) < minToken {
		return fmt.Errorf("holds %d characters, want %d at least", len(secret), minToken)
	}
	if strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("is damaged: it has characters that no client can send")
	}
	if strings.HasPrefix(text, tokenPrefix) || tokenRest.MatchString(text) {
		part := tokenForm.FindStringSubmatch(text)
		if part == nil || part[2] != tokenSum(part[1]) {
			return errors.New("is damaged: its checksum is another")
		}
	}
	// Earlier versions made tokens of 64 hexadecimal digits. An operator's own is not almost one.
	if n := len(hexDigit.FindAllString(secret, -1)); len(secret) == 64 && n >= 60 && n < 64 {
		return errors.New("is damaged: it is not all hexadecimal digits")
	}
	return nil
}
