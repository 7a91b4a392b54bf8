// Package printable makes text from outside safe to show. Machines, management
// processors, clusters and programs send text that is shown in logs, terminals, pages
// and error messages. Such text must not break a line, control a terminal or reverse
// the reading direction.
//
//   - [Line] is for prose: one line of printable characters, bounded.
//   - [Text] is Line without a bound, for text that is bounded elsewhere.
//   - [Quote] is for identifiers such as DHCP vendor classes, of which every byte
//     matters: anything but printable ASCII is quoted.
//
// The package knows nothing of HTML: templates escape what they print.
package printable

import (
	"strconv"
	"strings"
	"unicode"
)

// Text returns s as valid UTF-8 on one line: white space becomes a blank.
// Control characters, characters without a glyph such as the bidirectional
// overrides, and bytes that are not UTF-8 become "?".
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// Line returns s as [Text] does, without white space at its ends and with
// at most limit bytes: a longer text ends with "…".
func Line(s string, limit int) string {
	const more = "…"
	s = strings.TrimSpace(Text(s))
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:max(0, limit-len(more))], "") + more
	}
	return s
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
