package apitoken

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"drover/internal/atomicfile"
)

// maxSecret bounds a file that holds a token, in bytes.
const maxSecret = 4096

// secretText fits a token, as the server makes it: 32 bytes in hexadecimal digits.
var secretText = regexp.MustCompile(`^(drover_)?[0-9a-f]{64}(_[0-9a-f]{8})?$`)

// writeSecret writes the token that request returns to a file of mode 0600. It requests it once
// the directory has taken a file, and only if a file that is there may be replaced.
func writeSecret(file string, request func() (string, error)) error {
	path, err := atomicfile.Follow(file)
	if err == nil {
		err = mayReplace(path)
	}
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	return atomicfile.Create(path, 0o600, func(f *os.File) error {
		secret, err := request()
		if err == nil {
			_, err = fmt.Fprintln(f, secret)
		}
		return err
	})
}

// mayReplace returns an error for a file that has something else than a token.
func mayReplace(path string) error {
	data, err := atomicfile.Read(path, maxSecret)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if text := strings.TrimSpace(string(data)); err == nil && text != "" && !secretText.MatchString(text) {
		err = fmt.Errorf("%s exists, and holds no token: remove it, or name another file", path)
	}
	return err
}
