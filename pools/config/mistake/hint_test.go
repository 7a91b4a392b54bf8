package mistake

import "testing"

// distance is the Levenshtein distance by its definition.
func distance(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return distance(a[1:], b[1:])
	}
	return 1 + min(distance(a[1:], b), distance(a, b[1:]), distance(a[1:], b[1:]))
}

// TestEditDistance compares all words of up to four letters of two kinds.
func TestEditDistance(t *testing.T) {
	words := []string{""}
	for i := 0; len(words[i]) < 4; i++ {
		words = append(words, words[i]+"a", words[i]+"b")
	}
	for _, a := range words {
		for _, b := range words {
			want := distance(a, b)
			for limit := range 6 {
				if got := editDistance(a, b, limit); got != want && (want <= limit || got <= limit) {
					t.Errorf("%q, %q, limit %d: got %d, want %d", a, b, limit, got, want)
				}
			}
		}
	}
}
