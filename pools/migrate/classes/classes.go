// Package classes reads the tests of client classes, as Kea and ISC's dhcpd have them: [Matches]
// splits them at "and" and "or", and [Both] joins the matches of two. It does not know how a
// format writes a single test.
package classes

import (
	"cmp"
	"strings"

	"drover/pools"
)

// Bounds of the test of a class: its bytes, and the matches that it becomes.
const (
	maxTest         = 4 << 10
	maxAlternatives = 16
)

// Matches returns the matches for the test of a class, each of which is enough. ok is false if
// drover has none. single returns the match for a test without "and" and "or".
func Matches(test string, single func(string) (pools.Match, bool)) (all []pools.Match, ok bool) {
	if len(test) > maxTest {
		return nil, false
	}
	test = strings.TrimSpace(test)
	for strings.HasPrefix(test, "(") && closing(test) == len(test)-1 {
		test = strings.TrimSpace(test[1 : len(test)-1])
	}
	if parts := splitOutside(test, " or "); len(parts) > 1 {
		for _, part := range parts {
			more, ok := Matches(part, single)
			if all = append(all, more...); !ok || len(all) > maxAlternatives {
				return nil, false
			}
		}
		return all, true
	}
	if parts := splitOutside(test, " and "); len(parts) > 1 {
		all = []pools.Match{{}}
		for _, part := range parts {
			more, known := Matches(part, single)
			if all, ok = Both(all, more); !ok || !known {
				return nil, false
			}
		}
		return all, true
	}
	m, ok := single(test)
	return []pools.Match{m}, ok
}

// Both returns the matches for a client that has one of outer and one of inner. Where both
// name a value, that of inner counts. ok is false if they are too many.
func Both(outer, inner []pools.Match) (all []pools.Match, ok bool) {
	if len(outer)*len(inner) > maxAlternatives {
		return nil, false
	}
	for _, x := range outer {
		for _, y := range inner {
			m := pools.Match{Class: cmp.Or(y.Class, x.Class), UserClass: cmp.Or(y.UserClass, x.UserClass), Arch: y.Arch}
			if m.Arch.IsZero() {
				m.Arch = x.Arch
			}
			all = append(all, m)
		}
	}
	return all, true
}

// closing returns the index of the parenthesis that closes the first one; -1 if none does.
func closing(text string) int {
	end := -1
	outside(text, func(i, depth int) bool {
		if depth == 0 && text[i] == ')' {
			end = i
		}
		return end < 0
	})
	return end
}

// splitOutside splits a text at a separator outside of parentheses and quotes.
func splitOutside(text, separator string) (parts []string) {
	begin := 0
	outside(text, func(i, depth int) bool {
		if depth == 0 && i >= begin && strings.HasPrefix(text[i:], separator) {
			parts = append(parts, text[begin:i])
			begin = i + len(separator)
		}
		return true
	})
	return append(parts, text[begin:])
}

// outside calls see with the index of each byte outside of quotes, and the depth of the
// parentheses behind it, until see returns false.
func outside(text string, see func(i, depth int) bool) {
	depth, quote := 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '\'' || c == '"':
			quote = c
			continue
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if !see(i, depth) {
			return
		}
	}
}
