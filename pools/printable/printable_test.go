package printable_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"drover/pools/printable"
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
