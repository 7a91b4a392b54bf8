package main_test

import (
	"strings"
	"testing"

	main "drover/e2e/bench/dhcp"
)

// Of 200 people, those with a list of nodes all have another one.
func TestPathOf(t *testing.T) {
	lists := map[string]bool{}
	for i := range 200 {
		if path := main.PathOf(i); strings.HasPrefix(path, "/nodes?") {
			lists[path] = true
		}
	}
	if len(lists) != 80 {
		t.Errorf("%d lists", len(lists))
	}
}
