package wal_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"drover/e2e/fixture"
	"drover/state/wal"
)

// colors is a table.
type colors struct {
	mu     sync.Mutex
	values map[string]string
}

func openColors(dir string) (*wal.Log, *colors, error) {
	c := &colors{values: map[string]string{}}
	l := &wal.Log{Dir: dir, Size: 1000, Logger: slog.New(slog.DiscardHandler), Tables: map[wal.TableID]wal.Table{1: {
		Load: func(key, value []byte) error {
			c.values[string(key)] = string(value)
			return nil
		},
		Each: func(put func(key, value []byte), between func() error) error {
			return wal.Visit(&c.mu, c.values, func(key, value string) error {
				put([]byte(key), []byte(value))
				return nil
			}, between)
		},
	}}}
	return l, c, l.Open()
}

func (c *colors) set(l *wal.Log, key, value string) error {
	c.mu.Lock()
	t, err := l.Put(wal.Change{Table: 1, Key: []byte(key), Value: []byte(value)})
	if err == nil {
		c.values[key] = value
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return l.Wait(t)
}

func ExampleLog() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, value := range []string{"green", "blue"} {
		l, c, err := openColors(dir)
		if err != nil {
			panic(err)
		}
		fmt.Printf("sky: %q, then %q\n", c.values["sky"], value)
		if err := c.set(l, "sky", value); err != nil {
			panic(err)
		}
		if err := l.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// sky: "", then "green"
	// sky: "green", then "blue"
}

func TestChangesThatNoRecordHolds(t *testing.T) {
	l, c, err := openColors(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", string(make([]byte, 1<<16))} {
		if err := c.set(l, key, "red"); err == nil {
			t.Errorf("a key of %d bytes: got no error", len(key))
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := c.set(l, "sky", "red"); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
}

// A change may be made after a snapshot has visited its table. If its write fails, it is lost until
// the next snapshot is in force, and not only until this one is.
func TestLostUntilASnapshotHasIt(t *testing.T) {
	dir := t.TempDir()
	l, c, err := openColors(dir)
	if err == nil {
		err = errors.Join(c.set(l, "sky", "blue"), l.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	var broken atomic.Bool
	visited, goOn := make(chan bool), make(chan bool)
	c = &colors{values: map[string]string{}}
	l = &wal.Log{Dir: dir, Size: 1 << 20, Logger: slog.New(slog.DiscardHandler), Tables: map[wal.TableID]wal.Table{1: {
		Load: func(_, _ []byte) error { return nil },
		Each: func(put func(key, value []byte), _ func() error) error {
			c.mu.Lock()
			for key, value := range c.values {
				put([]byte(key), []byte(value))
			}
			c.mu.Unlock()
			visited <- true
			<-goOn
			return nil
		},
	}}, Sync: func(f *os.File) error {
		if broken.Load() {
			return errors.New("I/O error")
		}
		return f.Sync()
	}}
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	<-visited
	goOn <- true // that of the start
	l.Rewrite()
	<-visited
	broken.Store(true)
	ticket, err := l.Put(wal.Change{Table: 1, Key: []byte("sky"), Value: []byte("red")})
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.values["sky"] = "red"
	c.mu.Unlock()
	if err := l.Wait(ticket); err == nil {
		t.Error("the write did not fail")
	}
	broken.Store(false)
	goOn <- true
	<-visited // the next snapshot begins: the first one is in force
	if !l.Lost(ticket) {
		t.Error("the change is in no file, and counts as stored")
	}
	goOn <- true
	fixture.Eventually(t, "the next snapshot has the change", func() bool { return !l.Lost(ticket) })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, c, err = openColors(dir)
	if err != nil || c.values["sky"] != "red" {
		t.Errorf("got %q, %v after a restart, want red", c.values["sky"], err)
	}
}

// A table that this version does not know is an error: its values would be lost.
func TestUnknownTable(t *testing.T) {
	dir := t.TempDir()
	l, c, err := openColors(dir)
	if err == nil {
		err = errors.Join(c.set(l, "sky", "red"), l.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	l = &wal.Log{Dir: dir, Size: 1000, Logger: slog.New(slog.DiscardHandler)}
	if err := l.Open(); err == nil {
		t.Error("opened without the table")
	}
}

// FuzzRecords: whatever a disk makes of a log, it is read up to where it makes sense.
func FuzzRecords(f *testing.F) {
	dir := f.TempDir()
	l, c, err := openColors(dir)
	if err != nil {
		f.Fatal(err)
	}
	for n := range 5 {
		if err := c.set(l, fmt.Sprint("color", n), "red"); err != nil {
			f.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		f.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "drover.1.log"))
	if err != nil {
		f.Fatal(err)
	}
	read := func(b []byte) (n int, end int64, err error) {
		end, err = wal.ReadRecords(b, 1, func(_ int64, changes []byte) error {
			return wal.ReadChanges(changes, func(wal.Change) error { n++; return nil })
		}, func(int64, int64) error { return nil })
		return n, end, err
	}
	if n, _, err := read(content); n != 6 || err != nil { // the first is the log's own
		f.Fatalf("got %d changes, %v; want 6", n, err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, b []byte) {
		n, end, err := read(b)
		if n > len(b)/4 || end > int64(len(b)) {
			t.Errorf("%d changes up to %d in %d bytes, %v", n, end, len(b), err)
		}
		if err == nil {
			if again, _, err := read(b[:end]); again != n || err != nil {
				t.Errorf("cut at its end: %d changes and %v, want %d", again, err, n)
			}
		}
	})
}
