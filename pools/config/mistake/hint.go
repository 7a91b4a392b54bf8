package mistake

import (
	"fmt"
	"strings"
)

// didYouMean returns a hint with the known word that is nearest to got. If none is near,
// it returns all known words, or "" when they are many.
func didYouMean(got string, known []string) string {
	best, distance := "", 1+len(got)/3
	for _, k := range known {
		if n := editDistance(strings.ToLower(got), strings.ToLower(k), distance+1); n <= distance && n < len(k) {
			best, distance = k, n-1
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) > 0 && len(known) <= 13:
		return "known: " + strings.Join(known, ", ")
	}
	return ""
}

// Hint returns the known word that is nearest to got, as a hint. If none is near, it
// returns all known words, or fallback when they are many.
func Hint(got string, known []string, fallback string) string {
	if hint := didYouMean(got, known); hint != "" {
		return hint
	}
	return fallback
}

// editDistance returns the Levenshtein distance of a and b. It may return limit+1 for
// any distance above limit.
func editDistance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left, diagonal := i+1, i
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, left, row[j+1])
			}
			diagonal, row[j] = row[j+1], left
			left = cost
		}
		row[len(b)] = left
	}
	return row[len(b)]
}
