package snapshot_test

import (
	"strconv"
	"strings"
	"testing"

	"drover/internal/wait"
	"drover/web/page/snapshot"
)

// TestPage: readers share a page, and each has the own name and ETag in it. A name is no markup.
func TestPage(t *testing.T) {
	var s snapshot.Shared
	text := string(snapshot.ReaderMark) + "<p>" + snapshot.TagMark + "|" + snapshot.TagMark + "</p>" + string(snapshot.ReaderMark)
	made := 0
	render := func(*wait.Pace) ([]byte, error) {
		made++
		return []byte(text), nil
	}
	tags := map[string]bool{}
	for reader, want := range map[string]string{
		"alice, viewer": "alice, viewer", "bob, viewer": "bob, viewer",
		`<b>"x`: "&lt;b&gt;&#34;x", "\x1b[2J": "?[2J", string(snapshot.ReaderMark): "&lt;!--reader--&gt;", snapshot.TagMark: "&#34;@tag@&#34;",
	} {
		p, err := s.Rendered("key", render)
		if err != nil {
			t.Fatal(err)
		}
		tag := p.Tag(reader)
		var b strings.Builder
		if err := p.For(reader, &b); err != nil {
			t.Fatal(err)
		}
		if q := strconv.Quote(tag); b.String() != want+"<p>"+q+"|"+q+"</p>"+want {
			t.Errorf("%q reads %s", reader, b.String())
		}
		if tags[tag] || tag != p.Tag(reader) {
			t.Errorf("%q has the ETag %s of another, or two", reader, tag)
		}
		tags[tag] = true
	}
	if made != 1 {
		t.Errorf("the page was made %d times", made)
	}
}
