package dhcpd

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/migrate"
)

// reader reads the config of one server.
type reader struct {
	farm    *migrate.Farm
	names   map[string]migrate.OptionName
	classes map[string][]pools.Match
	groups  int
}

// Read reads configs and fills a farm.
func Read(f *migrate.Farm, files []string) error {
	r := &reader{farm: f, names: migrate.OptionNames(), classes: map[string][]pools.Match{}}
	for _, file := range files {
		p := &parser{read: migrate.ReadFile, left: maxStatements}
		all, err := p.file(file)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(s statement) bool {
			return slices.Contains([]string{"subnet", "subnet6", "shared-network", "host", "group", "option"}, s.word(0))
		}) {
			return migrate.FormatError(migrate.At(file), "no subnet, host, group or option: that is no config of dhcpd")
		}
		r.declare(all)
		var lease pools.Duration
		r.body(level{scope: &f.Global, lease: &lease, known: level{}.knownOnly(all), sure: level{}.authoritative(all)}, all)
		for _, n := range f.Networks() {
			if n.Lease == 0 {
				n.Lease = lease
			}
		}
	}
	return nil
}

// level is a block of the config, with what its statements apply to.
type level struct {
	scope   *migrate.Scope
	network *migrate.Network // within a subnet
	segment string           // within a shared network
	tags    []string         // of the groups around
	lease   *pools.Duration
	machine *migrate.Machine // within a host
	pool    *migrate.CatchAll
	ranges  *[]span
	known   bool // unknown clients get no address
	sure    bool // the server is authoritative
}

// knownOnly reports whether a block refuses unknown clients: wherever a statement of that
// stands, it is for all of the block, and for those inside that do not allow them again.
func (l level) knownOnly(block []statement) bool {
	has := func(texts ...string) bool {
		return slices.ContainsFunc(block, func(s statement) bool {
			text := strings.Replace(s.text(0), "known clients", "known-clients", 1)
			return slices.ContainsFunc(texts, func(want string) bool { return strings.HasPrefix(text, want) })
		})
	}
	switch {
	case has("deny unknown-clients", "ignore unknown-clients", "boot-unknown-clients false", "boot-unknown-clients off"):
		return true
	case l.pool != nil && has("allow known-clients"):
		return !has("allow unknown-clients", "allow all clients", "allow members of", "allow dynamic")
	case l.pool == nil && has("allow unknown-clients", "boot-unknown-clients true", "boot-unknown-clients on"):
		return false
	}
	return l.known
}

// authoritative reports whether the server is, for a block.
func (l level) authoritative(block []statement) bool {
	for _, s := range block {
		switch {
		case s.word(0) == "authoritative":
			return true
		case s.word(0) == "not" && s.word(1) == "authoritative":
			return false
		}
	}
	return l.sure
}

// span is a range of addresses.
type span struct {
	pools.Range
	at pools.Origin
}

// inner are statements about the server itself, its files, DNS updates and other details.
const inner = `ddns-update-style ddns-updates ddns-domainname ddns-rev-domainname ddns-hostname ddns-ttl ddns-local-address4 ddns-local-address6
	ddns-update-conflict-detection ddns-other-guard-is-dynamic ddns-dual-stack-mixed-mode ddns-guard-id-must-match update-conflict-detection
	update-optimization update-static-leases do-forward-updates do-reverse-updates client-updates log-facility lease-file-name pid-file-name
	dhcpv6-lease-file-name dhcpv6-pid-file-name db-time-format omapi-port omapi-key key zone failover local-address local-port local-address6
	remote-port ping-check ping-timeout ping-timeout-ms one-lease-per-client lease-id-format always-broadcast always-reply-rfc1048
	bind-local-address6 abandon-lease-time adaptive-lease-time-threshold delayed-ack max-ack-delay dhcp-cache-threshold
	dont-use-fsync server-duid server-id-check stash-agent-options use-lease-addr-for-default-route use-host-decl-names get-lease-hostnames
	site-option-space vendor-option-space min-lease-time max-lease-time min-secs preferred-lifetime dynamic-bootp-lease-cutoff
	dynamic-bootp-lease-length limit-addrs-per-ia limit-prefs-per-ia prefix-length-mode release-on-roam echo-client-id ignore-client-uids
	infinite-is-reserved check-secs-byte-order log-threshold-high log-threshold-low persist-eui-64-leases authoring-byte-order
	prefix6 fixed-prefix6 leasequery execute log on db-time subclass ddns lease parse-vendor-option send-host-names use-eui-64 syslog bootp duplicates
	declines known-clients client-identifier`

// body reads the statements of a block.
func (r *reader) body(l level, all []statement) {
	for i := range all {
		r.statement(l, all[i])
	}
}

func (r *reader) statement(l level, s statement) {
	f := r.farm
	s.at.Path = s.word(0)
	read := map[string]func(level, statement){
		"option": r.option, "subnet": r.subnet, "subnet6": r.subnet, "shared-network": r.sharedNetwork, "group": r.group,
		"host": r.host, "pool": r.pool, "pool6": r.pool, "range": r.addresses, "range6": r.addresses, "class": skip, "subclass": r.subclass,
		"filename": r.filename, "next-server": r.nextServer, "default-lease-time": r.lease, "hardware": r.hardware,
		"fixed-address": r.fixedAddress, "fixed-address6": r.fixedAddress, "host-identifier": r.identifier, "allow": r.permit,
		"deny": r.permit, "ignore": r.permit, "interface": r.serve, "if": r.condition, "elsif": r.condition, "else": r.condition,
		"server-name": r.serverName, "server-identifier": r.serverName, "authoritative": skip, "switch": r.condition,
		"always-broadcast": r.broadcast, "match": skip, "dynamic": skip, "boot-unknown-clients": r.permit,
	}[s.word(0)]
	switch {
	case read != nil:
		read(l, s)
	case s.word(0) == "not" && s.word(1) == "authoritative":
	case s.word(0) == "include-failed":
		f.Unknown(s.at, "the file to include is not read: %s (copy it here)", s.text(1))
	case slices.Contains(strings.Fields(inner), s.word(0)):
		f.Lost(s.at, "it is of the program dhcpd, its files, DNS updates or details of its leases")
	case slices.Contains([]string{"set", "unset", "append", "prepend", "supersede", "default", "add", "log", "execute", "on"}, s.word(0)):
		f.Lost(s.at, "drover computes no options: it has them by tag, network and node")
	default:
		f.Unknown(s.at, "a statement that this import does not know")
	}
}

func skip(level, statement) {}

// declare reads what others refer to: classes, and definitions of options.
func (r *reader) declare(all []statement) {
	for _, s := range all {
		s.at.Path = s.word(0)
		switch s.word(0) {
		case "class":
			r.class(s)
		case "option":
			r.define(s)
		}
		if s.has && s.word(0) != "class" {
			r.declare(s.block)
		}
	}
}

// define reads "option NAME code NUMBER = TYPE".
func (r *reader) define(s statement) {
	if s.word(2) != "code" || s.word(4) != "=" {
		return
	}
	n, err := strconv.ParseUint(s.word(3), 10, 8)
	if err != nil || strings.Contains(s.word(1), ".") {
		return
	}
	kind := strings.ToLower(s.text(5))
	types := map[string]string{
		"ip-address": "ip", "array of ip-address": "ip", "text": "text", "string": "hex", "boolean": "bool", "domain-name": "domains",
		"domain-list": "domains", "unsigned integer 8": "uint8", "unsigned integer 16": "uint16", "unsigned integer 32": "uint32",
		"integer 8": "uint8", "integer 16": "uint16", "integer 32": "uint32", "array of integer 8": "uint8",
		"array of unsigned integer 8": "uint8", "array of unsigned integer 16": "uint16", "array of unsigned integer 32": "uint32",
		"array of integer 16": "uint16", "array of integer 32": "uint32",
	}
	known, ok := types[kind]
	if !ok {
		r.farm.Lost(s.at, "the type %q of option %s: write its bytes as hex:", kind, s.word(1))
		known = "hex"
	}
	if old, ok := r.names[s.word(1)]; !ok || old.Code != uint8(n) {
		r.names[s.word(1)] = migrate.OptionName{Code: uint8(n), Type: known}
	}
}

// option reads "option NAME VALUE, VALUE".
func (r *reader) option(l level, s statement) {
	name := s.word(1)
	s.at.Path = "option " + name
	if s.word(2) == "code" && s.word(4) == "=" || name == "space" || name == "definition" {
		return // read before
	}
	name = strings.TrimPrefix(name, "dhcp.")
	if rest, v6 := strings.CutPrefix(name, "dhcp6."); v6 {
		r.option6(l, s, rest)
		return
	}
	o, ok := r.names[name]
	if code, err := strconv.ParseUint(strings.TrimPrefix(name, "unknown-"), 10, 8); err == nil && !ok {
		o, ok = migrate.OptionName{Code: uint8(code), Type: "hex"}, true
	}
	values, computed := optionValues(s.words[min(2, len(s.words)):])
	switch {
	case !ok && strings.Contains(name, "."):
		r.farm.Lost(s.at, "an option of a vendor's space (dhcpOptions has sub-options by number: 43.6, 125.311.1, 175.190)")
	case !ok:
		r.farm.Unknown(s.at, "unknown DHCP option %q", name)
	case computed || len(values) == 0:
		r.farm.Lost(s.at, "an option whose value is computed: drover has fixed ones, by tag, network and node")
	case o.Code == 121 || name == "rfc3442-classless-static-routes":
		r.farm.Set(l.scope, migrate.Option{At: s.at, Code: 121, Values: []string{"hex:" + hexOf(values)}})
	default:
		if o.Type == "hex" && len(s.words) == 3 && strings.HasPrefix(s.words[2], `"`) {
			o.Type = "text"
		}
		r.farm.SetNamed(l.scope, migrate.Option{At: s.at, Values: values}, o)
	}
}

// hexOf writes numbers as bytes.
func hexOf(values []string) string {
	var b strings.Builder
	for _, v := range values {
		n, _ := strconv.ParseUint(v, 0, 8)
		b.WriteString(strconv.FormatUint(n+0x100, 16)[1:])
	}
	return b.String()
}

// optionValues returns the values of an option. computed is true for an expression.
func optionValues(words []string) (values []string, computed bool) {
	var value []string
	for _, w := range append(words, ",") {
		switch {
		case w == ",":
			if len(value) > 0 {
				values = append(values, strings.Join(value, " "))
			}
			value = nil
		case strings.ContainsAny(w[:1], "=()!~"):
			return nil, true
		default:
			value = append(value, unquote(w))
		}
	}
	return values, false
}

// option6 reads an option of DHCPv6: name servers and domain, which a subnet has.
func (r *reader) option6(l level, s statement, name string) {
	values, _ := optionValues(s.words[min(2, len(s.words)):])
	switch {
	case name == "name-servers":
		l.scope.DNS6 = nil
		for _, v := range values {
			if a, err := netip.ParseAddr(v); err == nil {
				l.scope.DNS6 = append(l.scope.DNS6, a)
			}
		}
		r.farm.Taken(s.at, "subnets[].dns of the IPv6 subnets")
	case name == "domain-search" && len(values) > 0:
		l.scope.Domain6 = strings.TrimSuffix(values[0], ".")
		r.farm.Taken(s.at, "subnets[].domain of the IPv6 subnets")
	default:
		r.farm.Lost(s.at, "an option of DHCPv6 (dns and domain of an IPv6 subnet, or dhcpOptions of a tag: option6:NUMBER)")
	}
}

func (r *reader) filename(l level, s statement) {
	r.farm.SetBoot(l.scope, s.at, s.word(1), netip.Addr{})
}

func (r *reader) nextServer(l level, s statement) {
	a, err := netip.ParseAddr(s.word(1))
	if err != nil {
		r.farm.Lost(s.at, "boot server %q is a name: drover needs its address", s.word(1))
		return
	}
	r.farm.SetBoot(l.scope, s.at, "", a)
}

func (r *reader) serverName(_ level, s statement) {
	r.farm.Lost(s.at, "the name of the server: drover sends its address (subnets[].address)")
}

// subclass reads a member of a class: dhcpd knows it by a value, mostly its MAC.
func (r *reader) subclass(_ level, s statement) {
	r.farm.LeftOut(s.at, "member %s of class %q: drover knows machines as nodes with macs (write one, with its address)", s.text(2), s.word(1))
}

func (r *reader) lease(l level, s statement) {
	if s.text(1) == "-1" {
		s.words[1] = "4294967295" // without an end
	}
	n, err := strconv.ParseUint(s.word(1), 10, 32)
	if err != nil {
		r.farm.Unknown(s.at, "%q is no number of seconds", s.word(1))
		return
	}
	d := migrate.Lease(time.Duration(n) * time.Second)
	if l.lease == nil {
		r.farm.Lost(s.at, "a lease time of a group or a host (lease: of a subnet or a pool)")
		return
	}
	*l.lease = d
	r.farm.Taken(s.at, "lease: %s", d)
}

func (r *reader) broadcast(_ level, s statement) {
	r.farm.Lost(s.at, "broadcast: always of a pool")
}

func (r *reader) serve(_ level, s statement) { r.farm.Serve(s.at, s.word(1)) }

// permit reads allow, deny and ignore.
func (r *reader) permit(l level, s statement) {
	what := s.text(1)
	denied := s.word(0) != "allow"
	switch {
	case what == "unknown-clients" || what == "unknown clients" || s.word(0) == "boot-unknown-clients": // see knownOnly
		r.farm.Taken(s.at, "%s unknown clients: the catch-all pools", s.word(0))
	case strings.HasPrefix(what, "members of") && l.pool != nil:
		r.members(l, s, denied)
	case what == "booting" || what == "bootp" || strings.HasSuffix(what, "known-clients") || strings.HasSuffix(what, "known clients"):
		if what == "booting" && denied && l.machine != nil {
			l.machine.Ignore = true
			r.farm.Taken(s.at, "ignore: true of the node")
			return
		}
		r.farm.Taken(s.at, "nodes of drover have fixed addresses, and boot")
	default:
		r.farm.Lost(s.at, "%s: drover has no such permission", s.text(0))
	}
}

// members reads "allow members of CLASS" of a pool.
func (r *reader) members(l level, s statement, denied bool) {
	name := s.word(len(s.words) - 1)
	all, ok := r.classes[name]
	switch {
	case denied:
		r.farm.Taken(s.at, "machines of class %q land in the pool that allows them, which comes first", name)
	case !ok:
		r.farm.Lost(s.at, "class %q is no match of drover: the pool is for all unknown machines", name)
	default:
		l.pool.Match = all[0]
		if len(all) > 1 {
			r.farm.LeftOut(s.at, "class %q has several alternatives, and a pool one match: this is for the first of them (write a pool for each)", name)
		}
		r.farm.Taken(s.at, "match of the catch-all pool: class %q", name)
	}
}
