package migrate

import (
	"errors"
	"fmt"

	"drover/internal/printable"
	"drover/pools"
)

// Kind is the kind of a [Note].
type Kind string

// The kinds of note. Machines that are LeftOut and options that are Unknown make an import
// a partial one.
const (
	Taken      Kind = "taken"                   // the option has a counterpart, which is written
	Itself     Kind = "drover does this itself" // nothing is written, and it is so
	NotTaken   Kind = "not taken"               // drover may have it, in another form
	Lost       Kind = "no counterpart"          // the option is known, and drover has nothing for it
	Bug        Kind = "bug there"               // the option did not do there what it says
	Unknown    Kind = "not understood"
	LeftOut    Kind = "left out"   // a machine, a network or a range that drover cannot have
	Restricted Kind = "restricted" // a range is left out that drover would open to more machines
	Clash      Kind = "conflict"   // two machines with one MAC, address or name
)

// Note is the outcome of one option of the other config.
type Note struct {
	pools.Origin        // Path is the option: ltsp.config.timezone
	Kind         Kind   `json:"kind"`
	Text         string `json:"text"`
	covers       bool   // it is about all that is at the path
}

// String returns the note as one line: "values.yaml:12: taken: ltsp.config.timezone: ...".
func (n Note) String() string {
	text := string(n.Kind) + ": "
	switch {
	case n.Line > 0:
		text = fmt.Sprintf("%s:%d: %s", n.File, n.Line, text)
	case n.File != "":
		text = n.File + ": " + text
	}
	if n.Path != "" {
		text += n.Path + ": "
	}
	return printable.Text(text + n.Text)
}

// ErrFormat is the error for a file that is not of the expected format at all.
var ErrFormat = errors.New("not understood")

// FormatError returns an [ErrFormat] with the place and the cause.
func FormatError(at pools.Origin, format string, args ...any) error {
	where := at.File
	if at.Line > 0 {
		where = at.Position()
	}
	return fmt.Errorf("%s: %w: %s", where, ErrFormat, printable.Line(fmt.Sprintf(format, args...), 200))
}

func (f *Farm) note(kind Kind, at pools.Origin, format string, args ...any) {
	f.Notes = append(f.Notes, Note{Origin: at, Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// Itself notes that drover does what an option says, without a setting.
func (f *Farm) Itself(at pools.Origin, format string, args ...any) {
	f.note(Itself, at, format, args...)
}

// NotTaken notes that an option is not taken over, though drover may have it in another form.
func (f *Farm) NotTaken(at pools.Origin, format string, args ...any) {
	f.note(NotTaken, at, format, args...)
}

// Lost notes that an option has no counterpart: the reason, and the nearest way.
func (f *Farm) Lost(at pools.Origin, format string, args ...any) { f.note(Lost, at, format, args...) }

// Bug notes that an option did not do there what it says.
func (f *Farm) Bug(at pools.Origin, format string, args ...any) { f.note(Bug, at, format, args...) }

// Unknown notes that an option was not understood.
func (f *Farm) Unknown(at pools.Origin, format string, args ...any) {
	f.note(Unknown, at, format, args...)
}

// LeftOut notes that a machine, a network or a range was not written.
func (f *Farm) LeftOut(at pools.Origin, format string, args ...any) {
	f.note(LeftOut, at, format, args...)
}

// restricted notes that a range or a network is left out, because it is for some machines by
// a rule that drover does not have: without the rule it would be open to others.
func (f *Farm) restricted(at pools.Origin, format string, args ...any) {
	f.note(Restricted, at, format, args...)
}

func (f *Farm) clash(at pools.Origin, format string, args ...any) { f.note(Clash, at, format, args...) }
