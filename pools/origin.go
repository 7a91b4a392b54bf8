package pools

import "fmt"

// Origin is where a value was set.
type Origin struct {
	File string `json:"file,omitempty"` // the config file as it was named, or an object, "Machine m1"; empty for a default
	Line int    `json:"line,omitempty"` // from 1; 0 when the value was not read from a file
	Path string `json:"path"`           // "tags.foo.labels.label1", "default", "made from the MAC"
}

// HintError is an error in a value, with its remedy.
type HintError struct{ Msg, Hint string }

func (e *HintError) Error() string { return e.Msg + " (" + e.Hint + ")" }

// Hint returns a [HintError].
func Hint(hint, format string, args ...any) error {
	return &HintError{fmt.Sprintf(format, args...), hint}
}

// Position returns the file and line, "drover.yaml:41", or the object, "Machine m1"; the
// path for a value that is in neither.
func (o Origin) Position() string {
	switch {
	case o.File == "":
		return o.Path
	case o.Line == 0:
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// String returns the position and the path, "drover.yaml:41 (tags.foo)"; only the path
// for a value that is in no file.
func (o Origin) String() string {
	if o.File == "" || o.Path == "" {
		return o.Position()
	}
	return o.Position() + " (" + o.Path + ")"
}
