// Package cli has the parts that the subcommands of drover share: exit codes, the client
// of the REST API, common flags, and output as a table, JSON or YAML.
//
// It knows no subcommand.
package cli

import "errors"

// The exit codes; 0 is success.
const (
	Failed      = 1
	Usage       = 2
	Partly      = 3 // some of several machines or resources are done
	Unreachable = 4 // the server does not answer
	Refused     = 5 // the server does not accept the token
)

// Error is an error with an exit code.
type Error struct {
	Code int
	Err  error // nil if the command has printed it already
}

// Error returns the text of the cause; empty without one.
func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
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
