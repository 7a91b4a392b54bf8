package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"drover/pools"
	"drover/pools/atomicfile"
	"drover/pools/resolve"
)

// Source is where a server reads its config.
type Source struct {
	File string // the operator's
	// Copy is the server's own file with the last content of File that was in force. A
	// server starts from it when File is refused. Empty: there is none.
	Copy string
}

// Load returns the farm of the file. If the file is refused, it returns the farm of the
// copy, and refused says why.
func (s Source) Load(added ...pools.PoolNode) (farm *resolve.Farm, refused, err error) {
	var c resolve.Checked
	_, refused, err = s.load(true, func(content []byte) (err error) {
		c, err = parse(s.File, content, added)
		return err
	})
	farm, err = newFarm(c, err)
	return farm, refused, err
}

// load reads the file, or at the start of a server the copy of a file that is refused, and
// calls check with its content, which may refuse it. content is that of the file.
func (s Source) load(atStart bool, check func(content []byte) error) (content []byte, refused, err error) {
	content, err = atomicfile.Read(s.File, maxConfig)
	if err == nil {
		err = check(content)
	}
	if err == nil || !atStart {
		return content, err, err
	}
	good, goodErr := s.lastGood()
	if goodErr == nil && good != nil {
		if goodErr = check(good); goodErr == nil {
			return good, err, nil
		}
	}
	if goodErr != nil {
		err = errors.Join(err, fmt.Errorf("the copy of the last good config, %s, does not help: %w", s.Copy, goodErr))
	}
	return nil, err, err
}

// header is the first line of a copy, before the path of the operator's file. A server with
// another file must not start from it.
const header = "# The last content in force, kept by drover serve, of "

func (s Source) header() []byte {
	file := s.File
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	return fmt.Appendf(nil, "%s%q\n", header, file)
}

// lastGood returns the content of the copy; nil if there is none of this file.
func (s Source) lastGood() ([]byte, error) {
	if s.Copy == "" {
		return nil, nil
	}
	data, err := atomicfile.Read(s.Copy, maxConfig+4096)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	content, ok := bytes.CutPrefix(data, s.header())
	if err != nil || !ok {
		return nil, err
	}
	return content, nil
}

// keep makes the copy. The content may have secrets.
func (s Source) keep(content []byte) error {
	if s.Copy == "" {
		return nil
	}
	if err := atomicfile.Write(s.Copy, append(s.header(), content...), 0o600); err != nil {
		return fmt.Errorf("keep the config for the next start: %w", err)
	}
	return nil
}

// Status is the state of the config file beside the farm in force.
type Status struct {
	Refused error     // why the file is not in force; nil if it is
	Unkept  error     // why there is no copy of it for the next start
	Since   time.Time // when a content of the file last came into force; zero if it never did
	Digest  string    // SHA-256 of that content, hexadecimal
	Content []byte    // in force; after a start from the copy, that of the copy
}

// newStatus is the status after a content of the file came into force.
func newStatus(content []byte, unkept error) *Status {
	sum := sha256.Sum256(content)
	return &Status{Unkept: unkept, Since: time.Now(), Digest: hex.EncodeToString(sum[:]), Content: content}
}

// refuse is the status after the file was refused.
func (s *Status) refuse(err error) *Status {
	after := Status{Refused: err}
	if s != nil {
		after.Unkept, after.Since, after.Digest, after.Content = s.Unkept, s.Since, s.Digest, s.Content
	}
	return &after
}
