package unitfile_test

import (
	"testing"

	"drover/internal/unitfile"
)

// TestQuote: systemd reads the word as it was, whatever is in it.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"":             `""`,
		"/var/lib/a b": `"/var/lib/a b"`,
		`a"b\c`:        `"a\"b\\c"`,
		"50% of $HOME": `"50%% of $$HOME"`,
	} {
		if got := unitfile.Quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
