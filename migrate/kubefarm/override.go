package kubefarm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drover/migrate"
)

// bootMenu returns the settings that the server reads, for the menu of the loader.
func bootMenu() []string { return []string{"DEFAULT_IMAGE", "KERNEL_PARAMETERS", "MENU_TIMEOUT"} }

// ltspOptions reads the settings of LTSP of a tag. Those of all nodes are two lists there:
// ltsp.config.options silently wins over the tag all.
func (r *reader) ltspOptions(tag string, v *migrate.Value) {
	f := r.farm
	if tag == allTag {
		common := r.root.Get("ltsp", "config", "options")
		for _, p := range pairsOf(common) {
			if other := v.Get(p.Key); other != nil && other.String() != p.Value.String() {
				f.Bug(other.Origin, "ltsp.config.options.%s silently won over it, and does so here", p.Key)
			}
		}
		for _, p := range pairsOf(v) {
			if slices.Contains(bootMenu(), p.Key) && common.Get(p.Key) == nil {
				f.Bug(p.Value.Origin, "never read there: the boot menu was made without the tag all; here it is in force")
			}
		}
		if v == nil {
			v = common
		} else if common.IsMap() {
			v = migrate.Merge(v, common)
		}
	}
	for _, p := range pairsOf(v) {
		r.setting(tag, p.Key, p.Value)
	}
}

// before returns where else a setting of a tag has a value, which the tag's may replace: of
// all nodes, or of another tag. The tag all replaces nothing.
func (r *reader) before(tag, key string) (all []string) {
	r.others(tag, key, func(where, text string) { all = append(all, fmt.Sprintf("%s (%s)", where, text)) })
	return all
}

// others calls each for the values that a setting has in other tags.
func (r *reader) others(tag, key string, each func(where, text string)) {
	if tag == allTag {
		return
	}
	common := r.root.Get("ltsp", "config", "options", key)
	if common == nil {
		common = r.root.Get("tags", "ltspOptions", allTag, key)
	}
	if common.String() != "" {
		each("all nodes", common.String())
	}
	for _, other := range r.tags {
		if text := r.root.Get("tags", "ltspOptions", other, key).String(); other != tag && text != "" {
			each(fmt.Sprintf("tag %q", other), text)
		}
	}
}

// empty notes a setting without a value. LTSP leaves it out, and with it the value of an
// earlier tag.
func (r *reader) empty(tag, key string, v *migrate.Value) {
	if before := r.before(tag, key); len(before) > 0 && !slices.Contains(bootMenu(), key) {
		r.farm.Lost(v.Origin, "an empty value took away that of %s there; here that stays (move it to tags of the nodes that have it)", strings.Join(before, " and "))
		return
	}
	r.farm.Itself(v.Origin, "empty: LTSP leaves it out")
}

// overridden notes a setting that took the place of an earlier one with the same name there,
// where both are in force here: lines of files have no names.
func (r *reader) overridden(tag, key string, v *migrate.Value) {
	kinds := []string{"FSTAB_", "CRONTAB_", "HOSTS_", "KUBELET_EXTRA_ARGS_", "MASK_SYSTEM_SERVICES"}
	if !slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(key, kind) }) {
		return
	}
	here := parts(key, v.String())
	r.others(tag, key, func(where, text string) {
		if slices.ContainsFunc(parts(key, text), func(p string) bool { return !slices.Contains(here, p) }) {
			r.farm.Lost(v.Origin, "it took the place of that of %s there (%s); here both are in force", where, text)
		}
	})
}

// parts returns what a setting sets, by the names that drover merges tags by.
func parts(key, text string) (all []string) {
	words := strings.Fields(text)
	switch {
	case strings.HasPrefix(key, "FSTAB_") && len(words) > 1:
		return words[1:2]
	case strings.HasPrefix(key, "HOSTS_") && len(words) > 1:
		return words[1:]
	case key == "MASK_SYSTEM_SERVICES":
		return words
	case strings.HasPrefix(key, "KUBELET_EXTRA_ARGS_"):
		for _, m := range flag.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		return all
	}
	return []string{text}
}

// number notes a number that Helm writes in another way: it has float64 alone.
func (r *reader) number(v *migrate.Value) {
	n, err := strconv.ParseInt(v.String(), 10, 64)
	if text := fmt.Sprint(float64(n)); err == nil && !v.Quoted && text != v.Text {
		r.farm.Bug(v.Origin, "Helm wrote the number as %s there", text)
	}
}
