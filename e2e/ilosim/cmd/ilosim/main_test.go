package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"drover/e2e/fixture"
)

// TestRun starts the command line of docs/import.md and reads the addresses.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &fixture.Log{}
	ended := make(chan error, 1)
	r, w := io.Pipe()
	go func() {
		ended <- run(ctx, strings.Fields("--profile legacy14 --format old,crcrlf --fault cut-midtable:1 --power-delay 10s"), io.MultiWriter(out, w), io.Discard)
		w.Close()
	}()
	go func() { // the second line is the last before the server waits
		b := make([]byte, 1)
		for n := 0; ; {
			if _, err := r.Read(b); err != nil {
				return
			}
			if b[0] == '\n' {
				if n++; n == 2 {
					stop()
				}
			}
		}
	}()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "ssh 127.0.0.1:") || !strings.HasPrefix(lines[1], "rest 127.0.0.1:") || lines[2] != "logins 0" {
		t.Errorf("got %q", lines)
	}
}

// TestUsage rejects unknown formats, faults and arguments.
func TestUsage(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"--format odd", `unknown format "odd"`},
		{"--fault odd", `unknown fault "odd"`},
		{"--fault busy:x", "invalid syntax"},
		{"more", `unexpected argument "more"`},
	} {
		if err := run(t.Context(), strings.Fields(tt.line), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.line, err, tt.want)
		}
	}
}
