// Package cli is what the subcommands of drover share: the exit codes, the client of the
// REST API, the flags that all have, and JSON, YAML and table output.
//
// It knows no subcommand.
package cli

import "errors"

// The exit codes. 3, partly done, is for commands that work on many machines.
const (
	Failed      = 1
	Usage       = 2
	Partly      = 3
	Unreachable = 4 // the server does not answer
	Refused     = 5 // the server does not accept the token
)

// Error is an error that ends the program with a code of its own.
type Error struct {
	Code int
	Err  error // nil when all has been said
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the exit code for the error of a command.
func CodeOf(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Failed
}
