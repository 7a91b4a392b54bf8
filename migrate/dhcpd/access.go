package dhcpd

import (
	"cmp"
	"slices"
	"strings"

	"drover/migrate"
)

// level is a block of the config, with what its statements apply to.
type level struct {
	access migrate.Access
	host   bool
	pool   bool
	mute   bool // machines are denied booting
	sure   bool // the server is authoritative
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
		what, allowed, ok := s.permission()
		switch {
		case s.word(0) == "authoritative":
			l.sure = true
		case s.word(0) == "not" && s.word(1) == "authoritative":
			l.sure = false
		case isCondition(s):
			l.access.Closed = cmp.Or(l.access.Closed, restriction(s.block))
		case !ok || l.pool:
		case what == "booting":
			l.mute = !allowed
		case what == "unknown-clients":
			l.access.Known = !allowed
		case !harmless(what):
			l.access.Closed = cmp.Or(l.access.Closed, s.text(0))
		}
	}
	if l.mute {
		l.access.Closed = cmp.Or(l.access.Closed, "deny booting")
	}
	if l.pool {
		l.access = poolAccess(l.access, block)
	}
	return l
}

// poolAccess returns who may lease from a pool: a machine that one of the permissions allows,
// if there are some, and that none denies.
func poolAccess(a migrate.Access, block []statement) migrate.Access {
	all, known, unknown, others := false, false, false, ""
	for _, s := range block {
		what, allowed, ok := s.permission()
		switch {
		case !ok:
		case allowed && what == "all clients":
			all = true
		case allowed && what == "unknown-clients":
			unknown = true
		case allowed && what == "known-clients":
			known = true
		case allowed:
			others = s.text(0)
		case what == "unknown-clients":
			a.Known = true
		case what == "known-clients":
			a.Unnamed = true
		case !harmless(what):
			a.Closed = cmp.Or(a.Closed, s.text(0))
		}
	}
	switch {
	case all:
	case unknown:
		a.Unnamed = a.Unnamed || !known
	case others != "":
		a.Closed = cmp.Or(a.Closed, others)
	case known:
		a.Known = true
	}
	return a
}

func isCondition(s statement) bool {
	return slices.Contains([]string{"if", "elsif", "else", "switch", "case", "on"}, s.word(0))
}

// restriction returns the first statement in a block, or in those inside of it, that keeps
// machines out; empty if none does.
func restriction(block []statement) string {
	for _, s := range block {
		what, allowed, ok := s.permission()
		switch inner := restriction(s.block); {
		case ok && !allowed && !harmless(what), s.word(0) == "lease" && s.word(1) == "limit":
			return s.text(0)
		case inner != "":
			return inner
		}
	}
	return ""
}

// permit notes a permission, which the level has already. That of a host is a class of Kea.
func (r *reader) permit(l level, v *migrate.Value, s statement) {
	what, allowed, _ := s.permission()
	switch {
	case l.host && what == "booting" && !allowed:
		v.Append("client-classes", migrate.NewText(s.at, "DROP"))
	case what == "unknown-clients" || what == "all clients" || what == "booting" || harmless(what):
		r.farm.Itself(s.at, "nodes of drover have fixed addresses, and unknown machines lease from catch-all pools alone")
	case strings.HasPrefix(what, "members of"):
		r.farm.NotTaken(s.at, "%s: drover's match of a catch-all pool has a form of its own", s.text(0))
	default:
		r.farm.Lost(s.at, "%s: drover has no such permission", s.text(0))
	}
}

// class notes a class, a member of one, or a condition, which are not taken over: those that
// keep machines out close the ranges.
func (r *reader) class(s statement) {
	if rule := restriction(s.block); rule != "" && !isCondition(s) {
		r.farm.Close(s.at, s.text(0)+" { "+rule+" }")
	}
	if len(s.block) == 0 {
		r.farm.NotTaken(s.at, "%s: drover knows machines as nodes with macs, and others by the match of a catch-all pool", s.text(0))
	}
	for _, inner := range s.block {
		inner.at.Path = inner.word(0)
		code := r.names[strings.TrimPrefix(inner.word(1), "dhcp.")]
		switch {
		case inner.has:
			r.class(inner)
		case inner.word(0) == "filename":
			r.farm.BootFile(inner.at, inner.word(1))
		case inner.word(0) == "next-server":
			r.farm.BootServer(inner.at, inner.word(1))
		case inner.word(0) == "option" && code.Code == 67:
			r.farm.BootFile(inner.at, inner.word(2))
		case inner.word(0) == "option" && code.IsBoot():
			r.farm.BootServer(inner.at, inner.word(2))
		default:
			r.farm.NotTaken(inner.at, "it is for clients of %s: drover chooses loaders by firmware, and has options by node, network, tag and pool", s.text(0))
		}
	}
}
