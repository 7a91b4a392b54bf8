package crd

import "reflect"

// Patterns returns the patterns of types that are written as text.
func Patterns() map[reflect.Type]string {
	all := map[reflect.Type]string{}
	for t, s := range texts {
		if s.Pattern != "" {
			all[t] = s.Pattern
		}
	}
	return all
}
