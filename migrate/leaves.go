package migrate

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// account notes the leaves of the other config that are neither in the report nor in the config
// that is written. It shows no values: one may be a password.
func (f *Farm) account(doc *yaml.Node) {
	noted := map[string]Note{} // by line, and by path
	for _, n := range f.Notes {
		path, _, named := strings.Cut(n.Path, " (")
		if n.covers = named || n.Kind != Taken; n.covers || noted[n.File+"\n"+path].File == "" {
			noted[n.File+"\n"+path] = n
		}
		noted[n.Position()] = n
	}
	have := map[string]bool{}
	if len(doc.Content) > 0 {
		values(doc.Content[0], "", have)
	}
	for _, leaf := range f.leaves {
		if isNoted(noted, leaf) || have[strings.ToLower(TagName(leaf.Text))] && len(leaf.Text) > 2 {
			continue
		}
		for _, word := range words(leaf.Text) {
			if slices.ContainsFunc(forms(leaf.Path, word), func(form string) bool { return have[form] }) {
				continue
			}
			if kind, _, _ := strings.Cut(word, ":"); kind == "set" || kind == "tag" {
				f.NotTaken(leaf.Origin, "%s: the config that is written needs no such tag", word)
			} else {
				f.NotTaken(leaf.Origin, "the config that is written does not have it")
			}
			break
		}
	}
}

// isNoted reports whether a note is about a leaf: on its line, or in a tree at its path or
// around it.
func isNoted(noted map[string]Note, leaf Note) bool {
	if !strings.ContainsAny(leaf.Path, ".[") {
		_, ok := noted[leaf.Position()]
		return ok
	}
	if _, ok := noted[leaf.File+"\n"+leaf.Path]; ok {
		return true
	}
	for i, c := range leaf.Path { // the path of a whole file is empty
		if n, ok := noted[leaf.File+"\n"+leaf.Path[:i]]; ok && n.covers && (i == 0 || c == '.' || c == '[') {
			return true
		}
	}
	return false
}

// values collects the keys and the words of a config, in lower case: those of ranges and of
// prefixes too, and "key=value".
func values(n *yaml.Node, key string, have map[string]bool) {
	for i, c := range n.Content {
		inner := key
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				have[strings.ToLower(c.Value)] = true
				continue
			}
			inner = n.Content[i-1].Value
		}
		values(c, inner, have)
	}
	if n.Kind != yaml.ScalarNode {
		return
	}
	for _, w := range words(n.Value) {
		have[w], have[strings.ToLower(key)+"="+w] = true, true
		if first, last, ok := strings.Cut(w, "-"); ok && strings.ContainsAny(w, ".:") {
			have[first], have[last] = true, true
		}
		if p, err := netip.ParsePrefix(w); err == nil {
			have["/"+strconv.Itoa(p.Bits())], have[p.Addr().String()] = true, true
		}
	}
}

// words splits a text.
func words(text string) (all []string) {
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" \t\n,;\"'()", r) }) {
		if w = strings.Trim(w, "[]."); w != "" {
			all = append(all, w)
		}
	}
	return all
}

// forms returns the forms that a word at a path may have in a config: with its key, and MACs,
// addresses, masks, times, names, tags, URLs and bytes. A small number has none of its own.
func forms(path, w string) (all []string) {
	path = strings.ToLower(path)
	for i, c := range "." + path {
		if c == '.' {
			all = append(all, path[i:]+"="+w)
		}
	}
	if n, err := strconv.ParseUint(w, 10, 32); err == nil && n >= 60 {
		return append(all, w, Lease(time.Duration(n)*time.Second).String())
	} else if err == nil || w == "true" || w == "false" {
		return append(all, "/"+w) // the length of a prefix
	}
	for _, prefix := range []string{"", "set:", "tag:", "net:", "id:"} {
		if rest, is := strings.CutPrefix(w, prefix); is && rest != "" {
			first, _, _ := strings.Cut(rest, ".")
			all = append(all, rest, Label(rest), Label(first), strings.ToLower(TagName(rest)))
			if octets, err := encodeHex(rest); err == nil {
				all = append(all, octets...)
			}
		}
	}
	if mac, err := ParseHardware(w); err == nil {
		all = append(all, mac.String())
	}
	if p, err := netip.ParsePrefix(w); err == nil {
		all = append(all, p.Masked().String(), p.Addr().String())
	}
	if a, err := netip.ParseAddr(w); err == nil {
		all = append(all, a.String())
		if bits, ok := MaskBits(a); ok {
			all = append(all, "/"+strconv.Itoa(bits))
		}
	}
	if u, err := url.Parse(w); err == nil && u.Host != "" {
		all = append(all, u.Host)
	}
	return slices.DeleteFunc(all, func(form string) bool { return form == "" })
}
