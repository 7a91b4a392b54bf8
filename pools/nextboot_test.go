package pools_test

import (
	"strings"
	"testing"

	"drover/pools"
)

func TestParseNextBoot(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for _, s := range []string{"local", "rescue", "image=debian-12", "image=debian-12@sha256:" + digest} {
		if n, err := pools.ParseNextBoot(s); err != nil || string(n) != s {
			t.Errorf("%s: got %q, %v", s, n, err)
		}
	}
	for s, want := range map[string]string{
		"":              "is not a next boot",
		"Local":         "is not a next boot",
		"image":         "is not a next boot",
		"image=":        "is not an image",
		"image=../x":    "is not an image",
		"image=a@b":     "is not an image",
		"image=a\n":     "is not an image",
		"rescue image=": "is not a next boot",
	} {
		if n, err := pools.ParseNextBoot(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want %q", s, n, err, want)
		}
	}
}
