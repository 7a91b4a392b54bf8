package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/pools"
)

// secretsForUnknown refuses a catch-all pool that gives secrets to any machine that asks: files and
// passwords by reference, the password of root, and files that only their owner may read.
func (c *checker) secretsForUnknown(path, about string, p pools.Pool) {
	if !p.CatchAll {
		if p.SecretsForUnknown {
			c.failf(path+".secretsForUnknown", "remove it: only machines that the config declares are in the pool", "%s: only a catch-all pool has secretsForUnknown", about)
		}
		return
	}
	if p.SecretsForUnknown || p.Ignore {
		return
	}
	var found []string
	for _, name := range append([]string{"all"}, p.Tags...) {
		tag, ok := c.cfg.Tags[name]
		if !ok {
			continue
		}
		for _, file := range slices.Sorted(maps.Keys(tag.Files)) {
			if isSecret(tag.Files[file]) {
				found = append(found, fmt.Sprintf("file %s of tag %q", file, name))
			}
		}
		for _, script := range slices.Sorted(maps.Keys(tag.Scripts)) {
			if tag.Scripts[script].FromSecret != (pools.SecretRef{}) {
				found = append(found, fmt.Sprintf("script %s of tag %q", script, name))
			}
		}
		if s := tag.RootPasswordHash; s.IsReference() || strings.Trim(s.Text, "*!") != "" {
			found = append(found, fmt.Sprintf("rootPasswordHash of tag %q", name))
		}
	}
	if len(found) == 0 {
		return
	}
	const most = 3
	if n := len(found) - most; n > 0 {
		found = append(found[:most], fmt.Sprintf("%d more", n))
	}
	c.failf(path, "move them to a tag that declared nodes alone have, or write secretsForUnknown: true",
		"%s gives secrets to any machine that asks: %s", about, strings.Join(found, ", "))
}

// isSecret reports whether the content of a file is kept from somebody: it comes from a file of the
// server or a Secret, or other users of the node may not read it.
func isSecret(f pools.File) bool {
	mode := f.Permissions()
	return f.IsReference() || !strings.ContainsAny(mode[max(0, len(mode)-1):], "4567")
}
