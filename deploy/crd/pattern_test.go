package crd_test

import (
	"encoding"
	"reflect"
	"regexp"
	"testing"

	"drover/deploy/crd"
	"drover/pools"
)

// TestPatterns: the pattern of a type matches each text that the type takes: these, and those
// that differ from them in a character.
func TestPatterns(t *testing.T) {
	texts := map[reflect.Type][]string{
		reflect.TypeFor[pools.MAC]():       {"52:54:00:12:34:56", "52-54-00-AB-cd-EF", "5254.0012.3456", "525400123456"},
		reflect.TypeFor[pools.Duration]():  {"infinite", "90s", "1h30m", "1.5h", "+2m", ".5h", "1.h", "100ms", "5us", "5µs", "5μs", "7ns"},
		reflect.TypeFor[pools.Range]():     {"", "10.28.72.10-10.28.72.250", " 10.28.72.10 -\t10.28.72.250 ", "fd00::10-fd00::ff"},
		reflect.TypeFor[pools.Prefixes]():  {"10.244.0.0/16", " 10.244.0.0/16 , fd00:244::/56\n", "fd00::ffff:10.0.0.0/112", "10.0.0.0/8,10.1.0.0/16,10.2.0.0/16"},
		reflect.TypeFor[pools.Address32](): {"0x00080000", "0xABCDEF"},
		reflect.TypeFor[pools.Share]():     {"2%", "0.5%", "100%", "99.99%"},
	}
	for typ, pattern := range crd.Patterns() {
		matches := regexp.MustCompile(pattern).MatchString
		if len(texts[typ]) == 0 {
			t.Errorf("no text of %s", typ)
		}
		takes := func(text string) bool {
			return reflect.New(typ).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)) == nil
		}
		for _, text := range texts[typ] {
			if !takes(text) {
				t.Errorf("%s is not %q", typ, text)
			}
			for i := range len(text) + 1 {
				for _, near := range []string{text, text[:i] + text[min(i+1, len(text)):], text[:i] + "0" + text[i:], text[:i] + " " + text[i:]} {
					if takes(near) && !matches(near) {
						t.Errorf("%s takes %q, and %s does not match it", typ, near, pattern)
					}
				}
			}
		}
		if matches("soon") {
			t.Errorf("%s matches any text", pattern)
		}
	}
}
