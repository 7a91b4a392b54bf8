package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestConsole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	c, err := newConsole(path)
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan string)
	go func() {
		line, err := c.wait(context.Background(), regexp.MustCompile("^iPXE.*git$"))
		found <- fmt.Sprint(line, err)
	}()
	for _, piece := range []string{"\x1b[2J\x1b[1;1HSeaBIOS\r\n", "\r\n  \r\n", "iPX", "E 1.0.0\x1b[0m", "+git\r\nNet", "0:"} {
		if n, err := c.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(piece), err)
		}
	}
	if got, want := <-found, "iPXE 1.0.0+git<nil>"; got != want {
		t.Errorf("waited for %q, want %q", got, want)
	}
	if line, err := c.wait(context.Background(), regexp.MustCompile("Sea")); line != "SeaBIOS" || err != nil {
		t.Errorf("a line of the past: got %q, %v", line, err)
	}
	if line, err := c.wait(context.Background(), regexp.MustCompile("^Net")); line != "Net0:" || err != nil {
		t.Errorf("a line without its end: got %q, %v", line, err)
	}
	c.close()
	if _, err := c.wait(context.Background(), regexp.MustCompile("login")); !errors.Is(err, errOff) {
		t.Errorf("waited on a machine that is off: got %v, want %v", err, errOff)
	}
	if got, want := c.tail(2), []string{"iPXE 1.0.0+git", "Net0:"}; !slices.Equal(got, want) {
		t.Errorf("tail %q, want %q", got, want)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		want := regexp.MustCompile(`^ *\d+\.\d\d (SeaBIOS|iPXE 1\.0\.0\+git|Net0:)$`)
		if !want.MatchString(line) {
			t.Errorf("line %d of the file: got %q, want %s", i+1, line, want)
		}
	}
}

// TestConsoleLong lets more lines pass than are kept.
func TestConsoleLong(t *testing.T) {
	c, err := newConsole(filepath.Join(t.TempDir(), "console"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	found := make(chan error)
	go func() {
		_, err := c.wait(context.Background(), regexp.MustCompile("^the last$"))
		found <- err
	}()
	for i := range 2*keepLines + 5 {
		fmt.Fprintf(c, "line %d\n", i)
	}
	fmt.Fprint(c, "the last\n")
	if err := <-found; err != nil {
		t.Error(err)
	}
	if n := len(c.lines); n > keepLines {
		t.Errorf("%d lines kept, want %d at most", n, keepLines)
	}
	if _, err := c.Write(make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	if n := len(c.partial); n > 16<<10 {
		t.Errorf("a line of %d bytes is kept", n)
	}
}
