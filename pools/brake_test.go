package pools_test

import (
	"testing"

	"drover/pools"
)

func TestShare(t *testing.T) {
	for text, want := range map[string]string{
		"2%": "2%", "0.5%": "0.5%", "0.50%": "0.5%", "100%": "100%", "0%": "0%", "00.05%": "0.05%",
		"": "", "%": "", "2": "", "-1%": "", "100.01%": "", "101%": "", "1e1%": "", "NaN%": "", "2.%": "", ".5%": "", "0.125%": "", "2 %": "", "1.2.3%": "", "+1%": "",
	} {
		var s pools.Share
		switch err := s.UnmarshalText([]byte(text)); {
		case (err == nil) != (want != ""):
			t.Errorf("%q: got %v", text, err)
		case err == nil && s.String() != want:
			t.Errorf("%q: got %s, want %s", text, s, want)
		}
	}
}

func TestBrakeLimit(t *testing.T) {
	for _, tt := range []struct {
		nodes int
		share pools.Share
		of    int
		limit int
		on    bool
	}{
		{5, 200, 200, 5, true}, {5, 200, 1000, 20, true}, {5, 0, 1000, 5, true}, {0, 200, 1000, 0, false}, {5, 50, 10_000, 50, true}, {1, 10_000, 7, 7, true},
	} {
		b := pools.Brake{Nodes: &tt.nodes, Share: &tt.share}
		if limit, on := b.Limit(tt.of); limit != tt.limit || on != tt.on {
			t.Errorf("%+v: got %d, %v", tt, limit, on)
		}
	}
	if _, on := (pools.Brake{}).Limit(10); on {
		t.Error("a brake without defaults holds")
	}
}
