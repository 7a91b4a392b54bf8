package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// didYouMean returns a hint that names the known word nearest to got, or all
// of them when none is near and they are few.
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
	case len(known) > 0 && len(known) <= 12:
		return "known: " + strings.Join(known, ", ")
	}
	return ""
}

// knownHint is [didYouMean], or otherwise when there is nothing to mean.
func knownHint(got string, known []string, otherwise string) string {
	if hint := didYouMean(got, known); hint != "" {
		return hint
	}
	return otherwise
}

// editDistance is Levenshtein's, given up beyond limit.
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

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
