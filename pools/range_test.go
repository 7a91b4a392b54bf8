package pools_test

import (
	"testing"

	"drover/pools"
)

// Count counts across bytes, and ends where ranges of IPv6 are larger than any farm.
func TestRangeCount(t *testing.T) {
	for text, want := range map[string]int{
		"":                             0,
		"10.28.72.10-10.28.72.10":      1,
		"10.28.72.10-10.28.72.250":     241,
		"10.28.71.255-10.28.72.0":      2,
		"10.0.0.0-10.0.255.255":        1 << 16,
		"10.0.0.0-10.1.0.0":            1 << 16, // the limit
		"2001:db8::1-2001:db8::100":    256,
		"2001:db8::-2001:db8:0:1::":    1 << 16,
		"2001:db8::ffff-2001:db8::1:0": 2,
		"0.0.0.0-255.255.255.255":      1 << 16,
	} {
		var r pools.Range
		if err := r.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := r.Count(1 << 16); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
