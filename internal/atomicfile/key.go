package atomicfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"
)

// sumMark begins the last line of a key file: the SHA-256 of all lines before it, in hexadecimal.
const sumMark = "sha256:"

// sumDigits are those of a checksum, whose mark may be damaged.
var sumDigits = regexp.MustCompile(`[0-9a-f]{64}\n?$`)

// ErrDamagedKey is the error of a key file that is not as drover has written it.
var ErrDamagedKey = errors.New("the key is damaged")

// ReadOrMakeKey is [ReadOrMake] for a file that begins with a key, and ends with a line with its
// checksum. Without a checksum one wrong byte would silently be another key. A file of an earlier
// version has none: it is added if check, which may be nil, finds no fault in the key, and if the
// disk takes it within seconds.
func ReadOrMakeKey(path string, check func(key []byte) error, generate func() ([]byte, error)) (key []byte, isNew bool, err error) {
	data, isNew, err := ReadOrMake(path, func() ([]byte, error) {
		made, err := generate()
		return addSum(made), err
	})
	if err != nil {
		return nil, false, err
	}
	key, summed, err := checkSum(data)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w: restore the file from a backup, or remove it to have a new one made", path, err)
	}
	if check == nil {
		return key, isNew, nil
	}
	if err := check(key); err != nil {
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	if info, err := os.Lstat(path); !summed && err == nil && info.Mode().IsRegular() {
		file := Kept{Path: path, Mode: 0o600, Patience: 2 * time.Second}
		_ = file.Write(addSum(key)) // else at the next start: the key is as good as it was
	}
	return key, isNew, nil
}

// addSum returns a key with its checksum.
func addSum(key []byte) []byte {
	sum := sha256.Sum256(key)
	return fmt.Appendf(bytes.Clone(key), "\n%s%s\n", sumMark, hex.EncodeToString(sum[:]))
}

// checkSum returns a key without its checksum, and whether there was one.
func checkSum(data []byte) (key []byte, summed bool, err error) {
	mark := []byte("\n" + sumMark)
	at := bytes.LastIndex(data, mark)
	switch {
	case at >= 0 && bytes.Equal(addSum(data[:at]), data):
		return data[:at], true, nil
	case at >= 0, bytes.Contains(data, []byte(sumMark)), len(data) > 64 && sumDigits.Match(data):
		return nil, true, fmt.Errorf("%w: its checksum is another", ErrDamagedKey)
	}
	return data, false, nil
}
