package dhcpd

import (
	"cmp"
	"slices"
	"strings"

	"drover/migrate"
)

// level is a block of the config, with what its statements apply to.
type level struct {
	host  bool
	pool  bool
	known bool   // unknown machines are denied
	mute  bool   // all machines are denied booting
	rule  string // another rule that keeps machines out; empty: none
}

// permission returns what a statement permits or denies: "members of a", "unknown-clients".
// ok is false if it does neither.
func (s statement) permission() (what string, allowed, ok bool) {
	switch s.word(0) {
	case "allow", "deny", "ignore":
		what = strings.NewReplacer("unknown clients", "unknown-clients", "known clients", "known-clients").Replace(s.text(1))
		return what, s.word(0) == "allow", true
	case "boot-unknown-clients":
		return "unknown-clients", slices.Contains([]string{"on", "true", "1"}, s.word(1)), true
	}
	return "", false, false
}

// harmless are the permissions that keep no unknown machine out of a range of drover: it leases
// nothing by BOOTP, and machines that the config names have addresses of their own.
func harmless(what string) bool {
	return slices.Contains([]string{"known-clients", "bootp", "dynamic bootp clients", "dynamic-bootp-clients", "declines", "duplicates", "client-updates", "leasequery"}, what)
}

// inside returns the level for a block: what its statements permit and deny is for all of it,
// wherever they stand.
func (l level) inside(block []statement) level {
	for _, s := range block {
		switch what, allowed, ok := s.permission(); {
		case !ok || l.pool:
		case what == "booting":
			l.mute = !allowed
		case what == "unknown-clients":
			l.known = !allowed
		case !harmless(what):
			l.rule = cmp.Or(l.rule, s.text(0))
		}
	}
	return l
}

// rules adds to a pool what keeps machines out of it, in Kea's form: the classes that it allows,
// KNOWN, UNKNOWN and ALL among them, and any other rule.
func (l level) rules(v *migrate.Value, block []statement) {
	at := v.Origin
	add := func(key, text string) { v.Set(key, migrate.NewText(at, text)) }
	if l.known {
		add("client-class", "KNOWN")
	}
	if l.mute {
		add("rule", "deny booting")
	}
	if l.rule != "" {
		add("rule", l.rule)
	}
	allows := migrate.NewList(v.Origin)
	for _, s := range block {
		at.Line, at.Path = s.at.Line, s.word(0)
		class := map[string]string{"all clients": "ALL", "unknown-clients": "UNKNOWN", "known-clients": "KNOWN"}
		switch what, allowed, ok := s.permission(); {
		case !ok:
		case allowed:
			allows.Items = append(allows.Items, migrate.NewText(at, cmp.Or(class[what], what)))
		case what == "unknown-clients":
			add("client-class", "KNOWN")
		case what == "known-clients":
			add("client-class", "UNKNOWN")
		case !harmless(what):
			add("rule", s.text(0))
		}
	}
	if len(allows.Items) > 0 {
		v.Set("client-classes", allows)
	}
}

// restriction returns the first statement in a block, or in those inside of it, that keeps
// machines out; empty if none does. It may follow a label: case 1: ignore booting.
func restriction(block []statement) string {
	for _, s := range block {
		if s.word(0) == "lease" && s.word(1) == "limit" {
			return s.text(0)
		}
		for i := range s.words {
			if i > 0 && !strings.HasSuffix(s.words[i-1], ":") {
				continue
			}
			if what, allowed, ok := (statement{words: s.words[i:]}).permission(); ok && !allowed && !harmless(what) {
				return s.text(i)
			}
		}
		if inner := restriction(s.block); inner != "" {
			return inner
		}
	}
	return ""
}

// permit notes a permission, which the level has already. That of a host is a class of Kea, and
// that of a pool one of its rules.
func (r *reader) permit(l level, v *migrate.Value, s statement) {
	what, allowed, _ := s.permission()
	switch {
	case l.pool:
	case l.host && what == "booting" && !allowed:
		v.Append("client-classes", migrate.NewText(s.at, "DROP"))
	case what == "unknown-clients" || what == "all clients" || what == "booting" || harmless(what):
		r.farm.Itself(s.at, "nodes of drover have fixed addresses, and unknown machines lease from catch-all pools alone")
	default:
		r.farm.NotTaken(s.at, "%s: drover's match of a catch-all pool has a form of its own", s.text(0))
	}
}

// class lists a class, a member of one, or a condition, which are not taken over. One that keeps
// machines out closes all ranges.
func (r *reader) class(s statement) {
	if rule := restriction(s.block); rule != "" {
		r.farm.Close(s.at, s.text(0)+" { "+rule+" }")
	}
	r.listed(s)
}

// listed notes that a statement is not taken over, with all that is in it.
func (r *reader) listed(s statement) {
	r.farm.NotTaken(s.at, "%s: drover chooses loaders by firmware, and has options by node, network, tag and pool", s.text(0))
	for _, inner := range s.block {
		inner.at.Path = inner.word(0)
		r.listed(inner)
	}
}
