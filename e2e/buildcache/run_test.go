package buildcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStepsOfABuild(t *testing.T) {
	output := "[1/7] STEP 1/3: FROM localhost/base AS base\n" +
		"Get:1 http://deb.example.org bookworm InRelease [151 kB]\n" +
		"[2/7] STEP 2/4: RUN apt-get update  && mkdir /deb\n" +
		"Error: building at STEP without a colon\n" +
		"STEP 3/4: RUN echo 'žluťoučký kůň' " + strings.Repeat("a", 90) + "\n" +
		"COMMIT localhost/node"
	want := "image: [1/7] STEP 1/3: FROM localhost/base AS base\n" +
		"image: [2/7] STEP 2/4: RUN apt-get update && mkdir /deb\n" +
		"image: STEP 3/4: RUN echo 'žluťoučký kůň' " + strings.Repeat("a", 62) + "...\n" // 100 characters
	for _, size := range []int{1, 7, len(output)} { // a pipe can split the output anywhere
		t.Run(fmt.Sprintf("%d bytes at a time", size), func(t *testing.T) {
			var got bytes.Buffer
			w := &stepWriter{log: &got}
			if _, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{strings.NewReader(output)}, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if got.String() != want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

func TestTail(t *testing.T) {
	tests := []struct {
		name, in, want string
	}{
		{"short", "one\ntwo\n", "one\ntwo"},
		{"whole lines at the end", "first\n" + strings.Repeat("x", tailSize-5) + "\nlast\n", "last"},
		{"one endless line", strings.Repeat("y", 2*tailSize), strings.Repeat("y", tailSize)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var last tail
			if _, err := io.WriteString(&last, tt.in); err != nil {
				t.Fatal(err)
			}
			if got := last.String(); got != tt.want {
				t.Errorf("got %d bytes %.40q, want %d bytes %.40q", len(got), got, len(tt.want), tt.want)
			}
		})
	}
}

func TestTimedReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		err := timed(&log, "kube-apiserver", func() error {
			time.Sleep(75 * time.Second)
			return nil
		})
		want := "kube-apiserver: building\nkube-apiserver: building, 30 s\nkube-apiserver: building, 60 s\nkube-apiserver: built in 75 s\n"
		if got := log.String(); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		log.Reset()
		broken := errors.New("broken")
		if err := timed(&log, "etcd", func() error { return broken }); err != broken {
			t.Errorf("got %v, want %v", err, broken)
		}
		if got, want := log.String(), "etcd: building\n"; got != want {
			t.Errorf("after an error: got %q, want %q", got, want)
		}
	})
}

func TestRunShowsWhatWentWrong(t *testing.T) {
	var out bytes.Buffer
	err := run(command(t.Context(), "sh", "-c", "echo working; echo no such module >&2; exit 3"), &out)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(err.Error(), "sh: exit status 3\nworking\nno such module") {
		t.Errorf("got %v, want the exit status and the output", err)
	}
	if got, want := out.String(), "working\nno such module\n"; got != want {
		t.Errorf("output: got %q, want %q", got, want)
	}
}

// An interrupted build ends its compilers.
func TestCommandEndsWithItsChildren(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan struct{})
	r, w := io.Pipe()
	go func() {
		io.ReadFull(r, make([]byte, 1))
		close(started)
		io.Copy(io.Discard, r)
	}()
	done := make(chan error, 1)
	go func() {
		// Wait returns only when the child, which holds the pipe open, has ended.
		done <- run(command(ctx, "sh", "-c", "sleep 36000 & echo x; wait"), w)
		w.Close()
	}()
	<-started
	cancel()
	if err := <-done; err == nil { // the child's sleep is ten hours
		t.Error("got no error from a program that was ended")
	}
}
