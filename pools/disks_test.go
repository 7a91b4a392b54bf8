package pools_test

import (
	"testing"

	"drover/pools"
)

func TestSize(t *testing.T) {
	for in, want := range map[pools.Size]int64{
		"512": 512, "512M": 512 << 20, "100GiB": 100 << 30, "1KB": 1 << 10, "2TB": 2 << 40, "50%": 500, "100%": 1000, "1%": 10,
		"": 0, "0": 0, "-1": 0, "1.5G": 0, "G": 0, "101%": 0, "0%": 0, "9999999T": 0, "99999999999999999999": 0, "1 G": 0, "1g": 0, "1GM": 0, "%": 0, "1iB": 1,
	} {
		got, err := in.Of(1000)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: got %d, %v, want %d", in, got, err, want)
		}
	}
}
