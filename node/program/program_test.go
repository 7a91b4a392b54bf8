package program

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/fixture"
)

func TestLineWriter(t *testing.T) {
	long := strings.Repeat("a", maxLine)
	for _, tt := range []struct {
		name   string
		writes []string
		want   []string
	}{
		{"lines", []string{"a\nb\n"}, []string{"a", "b"}},
		{"in pieces", []string{"a", "b\nc", "\n\n", "d"}, []string{"ab", "c", "d"}},
		{"from a terminal", []string{"a\r\nb\r\n"}, []string{"a", "b"}},
		{"a token in pieces", []string{"abcdef.01234", "56789abcdef\n"}, []string{"[token]"}},
		{"a token where the line is cut for display", []string{strings.Repeat("-", maxShownLine-10) + "abcdef.0123456789abcdef\n"},
			[]string{strings.Repeat("-", maxShownLine-10) + "[token]"}},
		{"too long", []string{long, "abcdef.0123456789abcdef\nb\n"}, []string{strings.Repeat("a", maxShownLine) + "...", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			w := &lineWriter{line: func(s string) { got = append(got, s) }}
			for _, s := range tt.writes {
				if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
					t.Errorf("write: got %d, %v, want %d", n, err, len(s))
				}
			}
			w.close()
			if n, err := w.Write([]byte("late\n")); n != 5 || err != nil {
				t.Errorf("late: got %d, %v", n, err)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %.200q, want %.200q", got, tt.want)
			}
		})
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("told to stop")
	err := Run(ctx, exec.Command("/bin/sh", "-c", "echo on; sleep 60"), func(string) { cancel(why) })
	if !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

// TestRunWithDaemon: a daemon that holds the output open does not keep Run waiting.
func TestRunWithDaemon(t *testing.T) {
	var said []string
	pid := filepath.Join(t.TempDir(), "pid")
	err := Run(t.Context(), exec.Command("/bin/sh", "-c", "sleep 1000 & echo $! >"+pid+"; echo on"), func(line string) { said = append(said, line) })
	if err != nil || !slices.Equal(said, []string{"on"}) {
		t.Errorf("got %v, %q", err, said)
	}
	n, err := strconv.Atoi(strings.TrimSpace(fixture.ReadFile(t, pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(n, unix.SIGKILL); err != nil { // it runs on
		t.Error(err)
	}
}

// TestRunUnkillable: a program that does not end when it is killed does not keep its caller.
func TestRunUnkillable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("not done after 1m0s"))
		defer cancel()
		killed := 0
		err := await(ctx, make(chan error), func() { killed++ })
		if err == nil || !strings.HasPrefix(err.Error(), "not done after 1m0s, and it does not end when it is killed") || killed != 1 {
			t.Errorf("got %v, killed %d times", err, killed)
		}
		// One that succeeds at the last moment has succeeded.
		ended := make(chan error, 1)
		if err := await(ctx, ended, func() { ended <- nil }); err != nil {
			t.Errorf("got %v", err)
		}
	})
}
