package main

import (
	"slices"
	"testing"
)

// TestGroups: the help has each command below one heading, and no heading names another.
func TestGroups(t *testing.T) {
	root := newRootCommand()
	var named []string
	for _, g := range groups {
		named = append(named, g.names...)
	}
	for _, c := range root.Commands() {
		general := c.Hidden || slices.Contains([]string{"completion", "help", "version"}, c.Name())
		if n := len(slices.DeleteFunc(slices.Clone(named), func(name string) bool { return name != c.Name() })); general != (n == 0) || n > 1 {
			t.Errorf("%s is below %d headings", c.Name(), n)
		}
		named = slices.DeleteFunc(named, func(name string) bool { return name == c.Name() })
	}
	if len(named) > 0 {
		t.Errorf("headings name %q", named)
	}
}
