// Package natural sorts names as people count: m1c2 comes before m1c10.
package natural

import (
	"cmp"
	"strings"
)

// Compare compares two names; numbers in them by their value.
func Compare(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, restX := number(x)
		n, restY := number(y)
		if m != "" && n != "" {
			m, n = strings.TrimLeft(m, "0"), strings.TrimLeft(n, "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
				return c
			}
			x, y = restX, restY
			continue
		}
		if c := cmp.Compare(x[0], y[0]); c != 0 {
			return c
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// number cuts the digits that a text begins with.
func number(s string) (digits, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	return s[:len(s)-len(rest)], rest
}
