package tenants_test

import (
	"strings"
	"testing"

	"drover/tenants"
)

func TestUnreachable(t *testing.T) {
	tests := []struct{ from, to, want string }{
		{"", "v1.37.1", ""},
		{"", "v1.31.0", ""},
		{"", "v1.30.9", "v1.31.0 is the oldest"},
		{"", "1.37.1", "is not a version"},
		{"", "v1.37", "is not a version"},
		{"", "v1.37.1-rc.0", "is not a version"},
		{"", "v2.0.0", "is not a version"},
		{"", "v1.037.1", "is not a version"},
		{"v1.37.1", "v1.37.1", ""},
		{"v1.37.1", "v1.37.9", ""},
		{"v1.37.1", "v1.38.0", ""},
		{"v1.37.1", "v1.37.0", "v1.37.1 runs, and etcd's data cannot go back to v1.37.0; set version to v1.37.1 or later"},
		{"v1.37.1", "v1.36.9", "cannot go back"},
		{"v1.37.1", "v1.39.0", "v1.37.1 runs, and v1.39.0 is more than one minor version up; go to a v1.38 first"},
		{"v1.99.0", "v1.100.0", ""},
		{"garbage", "v1.37.1", ""},
	}
	for _, tt := range tests {
		got := tenants.Unreachable(tt.from, tt.to)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("from %q to %q: got %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestOlder(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"v1.36.4", "v1.37.1", true},
		{"v1.37.0", "v1.37.1", true},
		{"v1.37.1", "v1.37.1", false},
		{"v1.37.1", "v1.36.4", false},
		{"v1.37.2", "v1.37.1", false},
		{"v1.36.4+vendor", "v1.37.1", false}, // such an API server gets its add-ons too
		{"", "v1.37.1", false},
	}
	for _, tt := range tests {
		if got := tenants.Older(tt.a, tt.b); got != tt.want {
			t.Errorf("%q before %q: got %v", tt.a, tt.b, got)
		}
	}
}
