package printable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"drover/internal/printable"
)

func ExampleLine() {
	fmt.Println(printable.Line("  kubeadm:\n\tno such \x1b[31mfile\xff  ", 80))
	fmt.Println(printable.Line("a long story", 10))
	// Output:
	// kubeadm:  no such ?[31mfile?
	// a long …
}

func ExampleQuote() {
	fmt.Println(printable.Quote("PXEClient:Arch:00007", 64))
	fmt.Println(printable.Quote("\x01\x04ge-7", 64))
	// Output:
	// PXEClient:Arch:00007
	// "\x01\x04ge-7"
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                  "",
		"Umlaut ü, 世界":      "Umlaut ü, 世界",
		"tab\tnl\r\nend":    "tab nl  end",
		"a\x00b\x1b\x7fc":   "a?b??c",
		"next\u0085line":    "next line",
		"c1\u009bx":         "c1?x",
		"sep\u2028\u2029":   "sep  ",
		"bidi\u202e\u2066x": "bidi??x",
		"zero\u200bwidth":   "zero?width",
		"bad\xff\xfebytes":  "bad?bytes",
	} {
		if got := printable.Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestWriter: line ends and tabs stay, as programs write them.
func TestWriter(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"a\tb\n":                  "a\tb\n",
		"Umlaut ü, 世界\n":          "Umlaut ü, 世界\n",
		"\x1b]0;x\x07\x1b[2J\r\n": "?]0;x??[2J \n",
		"\u009b1m\u202e\u2066\n":  "?1m??\n",
		"\xff\xfe\t\x7f":          "?\t?",
	} {
		var b strings.Builder
		n, err := fmt.Fprint(printable.Writer{To: &b}, in)
		if b.String() != want || n != len(in) || err != nil {
			t.Errorf("%q: got %q, %d, %v, want %q", in, b.String(), n, err, want)
		}
	}
}

// TestEscapeJSON: the escapes mean the same.
func TestEscapeJSON(t *testing.T) {
	in := "{\n  \"a\": \"ü\u009b\u202e\u2028\u00a0\x7f😀\"\n}\n"
	got := string(printable.EscapeJSON([]byte(in)))
	if want := "{\n  \"a\": \"ü\\u009b\\u202e\\u2028\\u00a0\\u007f😀\"\n}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(in), &a), json.Unmarshal([]byte(got), &b)); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("got %v, want %v (%v)", b, a, err)
	}
}

// TestLineIsSmall: senders choose what is around a line, so a line must not keep it in memory.
func TestLineIsSmall(t *testing.T) {
	const size, n = 8192, 500
	for name, filler := range map[string]string{"blanks": " ", "line ends": "\n", "no UTF-8": "\xff", "wide blanks": "\u2003"} {
		lines := make([]string, n)
		before := heap()
		for i := range lines {
			lines[i] = printable.Line(fmt.Sprint(i, strings.Repeat(filler, size/len(filler))), 512)
		}
		if grown := heap() - before; grown > n*size/20 {
			t.Errorf("%s: %d lines such as %q take %d bytes", name, n, lines[1], grown)
		}
		runtime.KeepAlive(lines)
	}
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"PXEClient":                "PXEClient",
		"a\nlevel=ERROR":           `"a\nlevel=ERROR"`,
		"\x00\xff":                 `"\x00\xff"`,
		strings.Repeat("long", 99): strings.Repeat("long", 16),
	} {
		if got := printable.Quote(in, 64); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("no\x1b[31m such\n\tfile \xff", 20)
	f.Add(strings.Repeat("ü", 50), 21)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(3, limit%4096)
		got := printable.Line(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) }) {
			t.Errorf("%q, at most %d bytes: got %q", s, limit, got)
		}
	})
}

// Writer writes what Text returns, but for line ends and tabs.
func TestWriterIsText(t *testing.T) {
	for _, text := range []string{
		"", "plain", "\xff", "\xff\xfe", "a\xffb\xffc", "\xff\u202e\xfe", "·", "a·b\x00c", "\ufffd", "\xc2", "\x7f", "\u00a0x", "日本\xe6\x97", "\a\a", "\u2028end", strings.Repeat("x", 5000) + "\x1b" + strings.Repeat("é", 50),
	} {
		var b bytes.Buffer
		n, err := printable.Writer{To: &b}.Write([]byte(text + "\n\t" + text))
		if want := printable.Text(text) + "\n\t" + printable.Text(text); b.String() != want || n != 2*len(text)+2 || err != nil {
			t.Errorf("%.20q: wrote %.40q, %d, %v; want %.40q", text, b.String(), n, err, want)
		}
	}
}
