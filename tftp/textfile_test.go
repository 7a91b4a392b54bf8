package tftp

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// FuzzTextFile reads files as text in pieces of any size.
func FuzzTextFile(f *testing.F) {
	f.Add([]byte("one\ntwo\r\nthree\rfour\n"), uint16(3))
	f.Add([]byte{}, uint16(1))
	f.Fuzz(func(t *testing.T, file []byte, length uint16) {
		text, err := newTextFile(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer("\r", "\r\x00", "\n", "\r\n").Replace(string(file))
		if text.Size() != int64(len(want)) {
			t.Errorf("got size %d, want %d", text.Size(), len(want))
		}
		var got bytes.Buffer
		for b := make([]byte, length+1); ; {
			n, err := text.ReadAt(b, int64(got.Len()))
			got.Write(b[:n])
			if err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				break
			}
		}
		if got.String() != want {
			t.Errorf("got %q, want %q", got.String(), want)
		}
		if _, err := text.ReadAt(make([]byte, 1), 0); len(want) > 0 && err == nil {
			t.Error("the start is read a second time")
		}
	})
}

func TestTextFileShorter(t *testing.T) {
	if _, err := newTextFile(strings.NewReader("short"), 6); err == nil || !strings.Contains(err.Error(), "byte 5") {
		t.Errorf("got %v", err)
	}
}
