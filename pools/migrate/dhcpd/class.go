package dhcpd

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"drover/pools"
	"drover/pools/migrate/classes"
)

// The tests of classes and conditions that drover has a match for, as words with one blank
// between them.
var (
	vendorClass = regexp.MustCompile(`^(?:substring \( )?option vendor-class-identifier(?: , 0 , \d+ \))? = "([^"]*)"$`)
	arch        = regexp.MustCompile(`^option \S*(?:arch|architecture|architecture-type|pxe-system-type|client-arch|system-arch\S*) = (?:([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})|(\d+))$`)
	userClass   = regexp.MustCompile(`^(?:substring \( )?option user-class(?: , 0 , \d+ \))? = "([^"]*)"$`)
	gpxe        = regexp.MustCompile(`^exists (?:gpxe|ipxe)\S*$`)
)

// parseTest returns the matches for a test, each of which is enough. ok is false if drover has
// none.
func parseTest(words []string) (all []pools.Match, ok bool) {
	return classes.Matches(strings.Join(words, " "), single)
}

// single returns the match for a test without "and" and "or".
func single(text string) (m pools.Match, ok bool) {
	if text == "exists user-class" {
		return m, true // the test of its value follows
	}
	if found := vendorClass.FindStringSubmatch(text); found != nil {
		class := found[1]
		if strings.Contains(text, "substring") {
			class += "*"
		}
		return pools.Match{Class: class}, true
	}
	if found := userClass.FindStringSubmatch(text); found != nil {
		return pools.Match{UserClass: found[1]}, true
	}
	if gpxe.MatchString(text) {
		return pools.Match{UserClass: "iPXE"}, true
	}
	found := arch.FindStringSubmatch(text)
	if found == nil {
		return m, false
	}
	code := found[3]
	if code == "" {
		code = fmt.Sprintf("0x%02s%02s", found[1], found[2])
	}
	ok = m.Arch.UnmarshalText([]byte(code)) == nil
	return m, ok
}

// class reads "class NAME { match if TEST; }", and the boot files in it.
func (r *reader) class(s statement) {
	var all []pools.Match
	ok := false
	for _, st := range s.block {
		if st.word(0) == "match" && st.word(1) == "if" {
			if all, ok = parseTest(st.words[2:]); !ok {
				r.farm.Lost(st.at, "class %q: its test is no match of drover (class, userClass, arch): what depends on it is left", s.word(1))
			}
		}
	}
	if ok {
		r.classes[s.word(1)] = all
	}
	r.conditional(level{scope: &r.farm.Global}, all, ok, s.block)
}

// condition reads if, elsif and else: the boot files in them are rules of loaders.
func (r *reader) condition(l level, s statement) {
	all, ok := branch(s)
	r.conditional(l, all, ok, s.block)
}

// branch returns the matches of an if, an elsif, or an else.
func branch(s statement) ([]pools.Match, bool) {
	switch {
	case s.word(0) == "else" && len(s.words) == 1:
		return []pools.Match{{}}, true
	case s.word(0) == "else": // else if
		return parseTest(s.words[2:])
	}
	return parseTest(s.words[1:])
}

// conditional reads the statements that apply to some clients.
func (r *reader) conditional(l level, all []pools.Match, ok bool, block []statement) {
	var server netip.Addr
	for _, s := range block {
		if s.word(0) == "next-server" {
			server, _ = netip.ParseAddr(s.word(1)) // a name has no address: the file is then this server's
		}
	}
	for _, s := range block {
		s.at.Path = s.text(0)[:min(len(s.text(0)), 60)]
		switch s.word(0) {
		case "match", "next-server":
		case "if", "elsif", "else":
			inner, has := branch(s)
			inner, few := classes.Both(all, inner)
			r.conditional(l, inner, has && ok && few, s.block)
		case "filename":
			if !ok {
				r.farm.Lost(s.at, "boot file %q depends on a test that is no match of drover", s.word(1))
				continue
			}
			for _, m := range all {
				r.farm.Loader(l.scope, s.at, pools.LoaderRule{Arch: m.Arch, Class: m.Class, UserClass: m.UserClass, Loader: s.word(1), Server: server})
			}
		default:
			r.farm.Lost(s.at, "it depends on what the client sends: drover has options by node, network and tag; for unknown machines a pool with match")
		}
	}
}
