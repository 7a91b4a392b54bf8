package main

import "errors"

// The exit codes. 3, partly done, is for commands that work on many machines.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitPartly      = 3
	exitUnreachable = 4 // the server does not answer
	exitRefused     = 5 // the server does not accept the token
)

// exitError is an error that ends the program with a code of its own.
type exitError struct {
	code int
	err  error // nil when all has been said
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// codeOf is the exit code for what a command returned.
func codeOf(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailed
}
