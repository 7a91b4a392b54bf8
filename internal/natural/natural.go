// Package natural sorts names as people count: m1c2 comes before m1c10.
package natural

import (
	"cmp"
	"encoding/binary"
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

// AppendKey appends a key of a name. Keys compare as bytes like the names; those of names that
// differ only in zeros before a number are equal. It is for long lists: a key takes the time of
// one comparison.
func AppendKey(b []byte, name string) []byte {
	for name != "" {
		digits, rest := number(name)
		if digits == "" {
			b, name = append(b, name[0]), name[1:]
			continue
		}
		digits = strings.TrimLeft(digits, "0")
		b = append(b, '0') // other characters compare alike with all digits
		if n := len(digits); n < 255 {
			b = append(b, byte(n))
		} else {
			b = binary.BigEndian.AppendUint32(append(b, 255), uint32(n))
		}
		b, name = append(b, digits...), rest
	}
	return b
}

// number cuts the digits that a text begins with.
func number(s string) (digits, rest string) {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:]
}
