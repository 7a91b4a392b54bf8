package config

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/config/include"
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
func (s Source) Load(nodes ...pools.PoolNode) (farm *resolve.Farm, refused, err error) {
	var c resolve.Checked
	read, err := include.Read(s.File)
	_, refused, err = s.choose(read, err, true, func(text *include.Text) (err error) {
		c, err = decodeText(text).with(nil, nodes, allWait)
		return err
	})
	farm, err = newFarm(c, err)
	return farm, refused, err
}

// choose returns the text of the file, or at the start of a server that of the copy when the
// file is refused: it could not be read, or check is against it.
func (s Source) choose(text *include.Text, err error, atStart bool, check func(*include.Text) error) (chosen *include.Text, refused, _ error) {
	if err == nil {
		err = check(text)
	}
	if err == nil || !atStart {
		return text, err, err
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

// lastGood returns the text of the copy; nil if there is none of this file.
func (s Source) lastGood() (*include.Text, error) {
	if s.Copy == "" {
		return nil, nil
	}
	data, err := atomicfile.Read(s.Copy, include.MaxCopy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return include.OfCopy(s.File, data)
}

// lastText returns the text of the copy; nil if there is none of this file, or the disk hangs.
func (s Source) lastText() *include.Text {
	read := make(chan *include.Text, 1)
	go func() {
		text, err := s.lastGood()
		if err != nil {
			text = nil // the server goes on without it, and writes another
		}
		read <- text
	}()
	select {
	case text := <-read:
		return text
	case <-time.After(copyPatience):
		return nil
	}
}

// keep makes the copy. The text may have secrets. A disk that hangs gets it later.
func (l *Live) keep(text *include.Text) error {
	if l.source.Copy == "" {
		return nil
	}
	if err := l.copy.Write(text.Copy()); err != nil {
		return fmt.Errorf("keep the config for the next start: %w", err)
	}
	return nil
}

// Status is the state of the config file beside the farm in force.
type Status struct {
	Refused error         // why the file is not in force; nil if it is
	Unkept  error         // why there is no copy of it for the next start
	Since   time.Time     // when a content of the file last came into force; zero if it never did
	Digest  string        // of that content, see [include.Text.Digest]
	Text    *include.Text // in force; after a start from the copy, that of the copy

	// Held is the content of the file, if it has no mistake and is not in force; nil if it is.
	Held *pools.HeldConfig
}

// newStatus is the status after a text came into force.
func newStatus(text *include.Text, unkept error) *Status {
	return &Status{Unkept: unkept, Since: time.Now(), Digest: text.Digest(), Text: text}
}

// refuse is the status after the file was refused.
func (s *Status) refuse(err error) *Status {
	after := Status{Refused: err}
	if s != nil {
		after.Unkept, after.Since, after.Digest, after.Text = s.Unkept, s.Since, s.Digest, s.Text
	}
	return &after
}
