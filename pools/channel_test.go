package pools_test

import (
	"fmt"
	"testing"

	"drover/pools"
)

func TestIsImage(t *testing.T) {
	for ref, want := range map[string]bool{
		"debian-12": true, "debian-12:canary": true, "debian-12:stable": true, "debian-12@sha256:0123456789ab": true,
		"debian:12": false, "debian-12:": false, "debian-12:Canary": false, "debian-12:a/b": false, "debian-12:canary@sha256:0123456789ab": false,
		"": false, ":canary": false, "../x:canary": false, "debian-12:canary\n": false,
	} {
		if got := pools.IsImage(ref); got != want {
			t.Errorf("%q: got %t", ref, got)
		}
	}
}

func TestSplitImage(t *testing.T) {
	for ref, want := range map[string]string{
		"a": "a,,", "a:b": "a,b,", "a@sha256:0f": "a,,0f", "a@0f": "a,,0f", "": ",,", "a:b@0f": "a:b,,0f",
	} {
		name, channel, id := pools.SplitImage(ref)
		if got := fmt.Sprintf("%s,%s,%s", name, channel, id); got != want {
			t.Errorf("%q: got %s, want %s", ref, got, want)
		}
	}
}

// TestMeans: a generation is meant by its ID, by a channel that has it, and by the name if it is current.
func TestMeans(t *testing.T) {
	i := pools.ImageInfo{Name: "a", ID: "0f12", Current: true, Channels: []string{"canary"}}
	for ref, want := range map[string]bool{
		"a": true, "a:stable": true, "a:canary": true, "a@sha256:0f": true, "a@0f12": true, "a:beta": false, "a@1f": false, "b": false, "b:canary": false,
	} {
		if got := i.Means(ref); got != want {
			t.Errorf("%s: got %t", ref, got)
		}
	}
}

// TestBack: a roll-back takes a promotion back; what it has left is no way back, nor is a bad one.
func TestBack(t *testing.T) {
	for _, tt := range []struct {
		history string // the oldest first; small letters are roll-backs
		bad     string
		want    string
	}{
		{"A", "", "[]"},
		{"AB", "", "[A]"},
		{"ABC", "", "[B A]"},
		{"ABCb", "", "[A]"},
		{"ABCba", "", "[]"},
		{"ABCbD", "", "[B A]"},
		{"ABC", "B", "[A]"},
		{"ABA", "", "[B]"},
		{"Bb", "", "[]"},
		{"bC", "", "[b]"}, // the promotion that it took back is forgotten
	} {
		var c pools.ImageChannels
		for _, r := range tt.history {
			id, back := string(r), r >= 'a'
			if back && tt.history != "bC" {
				id = string(r - 'a' + 'A')
			}
			c = c.With("stable", pools.Promotion{ID: id, Back: back})
		}
		for _, r := range tt.bad {
			c = c.Marked(string(r), &pools.ImageMark{})
		}
		if got := fmt.Sprint(c.Back("stable")); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.history, got, tt.want)
		}
	}
	if got := (pools.ImageChannels{}).Back("stable"); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
