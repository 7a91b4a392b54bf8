package external_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/imagebuild/external"
)

// script writes a program and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "squash")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// endless writes until the program takes no more.
func endless(w io.Writer) error {
	for block := make([]byte, 64<<10); ; {
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
}

func TestFind(t *testing.T) {
	for name, tt := range map[string]struct{ text, version, err string }{
		"version":          {`echo "squash (of a suite) 1.3.2-5 from 2024"`, "1.3.2", ""},
		"version of two":   {`echo 4.6; echo "with zlib 1.3"`, "4.6", ""},
		"without one":      {"echo squash", "unknown", ""},
		"silent":           {"", "unknown", ""},
		"only on stderr":   {"echo 1.3 >&2", "unknown", ""},
		"no such option":   {"echo 1.3; exit 2", "", "--version: exit status 2"},
		"asked for others": {`test "$*" = --version && echo 7.0`, "7.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := script(t, tt.text)
			t.Setenv("PATH", filepath.Dir(want)+":"+os.Getenv("PATH"))
			path, version, err := external.Find(t.Context(), "squash")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want one with %q and %q", err, want, tt.err)
				}
				return
			}
			if err != nil || path != want || version != tt.version {
				t.Errorf("got %q %q, %v, want %q %q", path, version, err, want, tt.version)
			}
		})
	}
	t.Setenv("PATH", t.TempDir())
	if _, _, err := external.Find(t.Context(), "squash"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("not installed: got error %v, want %v", err, exec.ErrNotFound)
	}
}

// TestRun: the program gets the data to its end, and its own standard output is the caller's.
func TestRun(t *testing.T) {
	var got strings.Builder
	cmd := exec.CommandContext(t.Context(), script(t, "cat; echo noise >&2"))
	cmd.Stdout = &got
	err := external.Run(t.Context(), cmd, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("data", 1<<19))
		return err
	})
	if want := strings.Repeat("data", 1<<19); err != nil || got.String() != want {
		t.Errorf("got %d bytes, %v, want %d", got.Len(), err, len(want))
	}
}

// TestRunFails: the error has the cause, on one line, and never more of the output than its end.
func TestRunFails(t *testing.T) {
	nothing := func(io.Writer) error { return nil }
	for name, tt := range map[string]struct {
		text  string
		write func(io.Writer) error
		want  string
	}{
		"message":                 {"echo disk full >&2; exit 3", nothing, "squash: exit status 3: disk full"},
		"on standard output":      {"echo disk full; exit 3", nothing, "squash: exit status 3: disk full"},
		"several lines":           {"echo one >&2; echo two >&2; exit 1", nothing, "squash: exit status 1: one; two"},
		"no message":              {"exit 1", nothing, "squash: exit status 1: (no output)"},
		"killed":                  {"kill -KILL $$", nothing, "squash: signal: killed: (no output)"},
		"before it read the data": {"echo no such option >&2; exit 1", endless, "squash: exit status 1: no such option"},
		"success without data":    {"exit 0", endless, "broken pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			err := external.Run(t.Context(), exec.CommandContext(t.Context(), script(t, tt.text)), tt.write)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
	cmd := exec.CommandContext(t.Context(), script(t, `head -c 20000000 /dev/zero | tr '\0' x >&2; echo "; the cause" >&2; exit 1`))
	if err := external.Run(t.Context(), cmd, nothing); err == nil || !strings.HasSuffix(err.Error(), "xxx; the cause") || len(err.Error()) > 5000 {
		t.Errorf("an output of 20 MB: got an error of %d bytes, %.60v", len(err.Error()), err)
	}
	cmd = exec.CommandContext(t.Context(), filepath.Join(t.TempDir(), "none"))
	called := false
	if err := external.Run(t.Context(), cmd, func(io.Writer) error { called = true; return nil }); !errors.Is(err, fs.ErrNotExist) || called {
		t.Errorf("no such program: got error %v, data was made: %t", err, called)
	}
}

// TestRunIncomplete: a program whose data ends with an error does not see a regular end, after
// which it would write a whole file.
func TestRunIncomplete(t *testing.T) {
	result := filepath.Join(t.TempDir(), "result")
	cmd := exec.CommandContext(t.Context(), script(t, `read line; echo began; cat >/dev/null; touch "$1"`), result)
	broken := errors.New("a layer has the wrong digest")
	read, began, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd.Stdout = began
	err = external.Run(t.Context(), cmd, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half\n"); err != nil {
			return err
		}
		began.Close()
		if _, err := read.Read(make([]byte, 1)); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got error %v, want %v", err, broken)
	}
	if _, err := os.Stat(result); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program ended as if the data was complete: %v", err)
	}
}

// TestRunCancelled: a program that reads nothing and never ends is ended with the context, and
// the error is why the context ended.
func TestRunCancelled(t *testing.T) {
	why := errors.New("the operator has enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cmd := exec.CommandContext(ctx, script(t, "exec sleep 1000"))
	var ended fixture.Log
	err := external.Run(ctx, cmd, func(w io.Writer) error {
		go cancel(why)
		err := endless(w)
		ended.Printf("%v", err)
		return err
	})
	if !errors.Is(err, why) {
		t.Errorf("got error %v, want %v", err, why)
	}
	fixture.WantText(t, "the end of the data", ended.String(), "broken pipe")
}
