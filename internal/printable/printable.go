// Package printable makes text from outside safe to show. Machines, management
// processors, clusters and programs send text that is shown in logs, terminals, pages
// and error messages. Such text must not break a line, control a terminal or reverse
// the reading direction.
//
//   - [Line] is for prose: one line of printable characters, bounded.
//   - [Text] is Line without a bound, for text that is bounded elsewhere.
//   - [Quote] is for identifiers such as DHCP vendor classes, of which every byte
//     matters: anything but printable ASCII is quoted.
//   - [Writer] is for the output of a program: whatever is written has gone through it.
//   - [EscapeJSON] is for JSON, which programs read too.
//
// The package knows nothing of HTML: templates escape what they print.
package printable

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s as valid UTF-8 on one line: white space becomes a blank.
// Control characters, characters without a glyph such as the bidirectional
// overrides, and bytes that are not UTF-8 become "?".
func Text(s string) string { return strings.Map(shown, strings.ToValidUTF8(s, "?")) }

// shown returns the character that is shown for r.
func shown(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case !unicode.IsPrint(r):
		return '?'
	}
	return r
}

// Writer passes text on to another writer as [Text] returns it, but keeps line ends and
// tabs. Each write must hold whole characters.
type Writer struct{ To io.Writer }

// Write writes p, and returns its length even if other bytes were written.
func (w Writer) Write(p []byte) (int, error) {
	var out []byte
	from := 0 // of p, what is not in out yet
	invalid := false
	for i := 0; i < len(p); {
		if b := p[i]; b >= ' ' && b <= '~' || isLayout(rune(b)) {
			i, invalid = i+1, false
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		bad := r == utf8.RuneError && size == 1
		if show := shown(r); bad || show != r {
			out = append(out, p[from:i]...)
			if bad {
				show = '?'
			}
			if !bad || !invalid { // bytes in a row that are no text become one
				out = utf8.AppendRune(out, show)
			}
			from = i + size
		}
		i, invalid = i+size, bad
	}
	shown := p
	if from > 0 {
		shown = append(out, p[from:]...)
	}
	if _, err := w.To.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// isLayout reports whether programs write r between texts.
func isLayout(r rune) bool { return r == '\n' || r == '\t' }

// EscapeJSON writes the characters of JSON that [Writer] would replace as \u escapes,
// which mean the same. Those above U+FFFF stay, because YAML does not know them in pairs.
func EscapeJSON(text []byte) []byte {
	var b []byte
	for _, r := range string(text) {
		if isLayout(r) || r == shown(r) || r > 0xffff {
			b = utf8.AppendRune(b, r)
		} else {
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

// Line returns s as [Text] does, without white space at its ends and with
// at most limit bytes: a longer text ends with "…". A line that is shorter than s does not keep
// the memory of s.
func Line(s string, limit int) string {
	const more = "…"
	line := strings.TrimSpace(Text(s))
	switch {
	case len(line) > limit:
		return strings.ToValidUTF8(line[:max(0, limit-len(more))], "") + more
	case len(line) < len(s):
		return strings.Clone(line) // it is a part of s, or of a buffer of that size
	}
	return line
}

// Quote returns the first limit bytes of s. If they are not all printable ASCII, it
// returns them quoted as a Go string.
func Quote(s string, limit int) string {
	s = s[:min(len(s), limit)]
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}
