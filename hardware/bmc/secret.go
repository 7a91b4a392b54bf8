package bmc

import "log/slog"

// Secret is a password. It prints as a placeholder, so that no error, log line
// or answer shows it by accident.
type Secret string

const hidden = "[secret]"

// String returns a placeholder.
func (Secret) String() string { return hidden }

// GoString returns a placeholder.
func (Secret) GoString() string { return hidden }

// LogValue returns a placeholder.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns a placeholder.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
