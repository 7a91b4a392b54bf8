package pools

import "fmt"

// HintError is a mistake in a value, with its remedy.
type HintError struct{ Msg, Hint string }

func (e *HintError) Error() string { return e.Msg + " (" + e.Hint + ")" }

// Hint returns a [HintError].
func Hint(hint, format string, args ...any) error {
	return &HintError{fmt.Sprintf(format, args...), hint}
}

// Position returns the file and line alone; the path for a value that is in no
// file.
func (o Origin) Position() string {
	if o.File == "" {
		return o.Path
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// String returns "drover.yaml:41 (tags.foo)"; the path alone for a value that is
// in no file.
func (o Origin) String() string {
	if o.File == "" || o.Path == "" {
		return o.Position()
	}
	return o.Position() + " (" + o.Path + ")"
}
