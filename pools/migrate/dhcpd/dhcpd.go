package dhcpd

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
	"drover/pools/migrate"
)

// reader reads the config of one server.
type reader struct {
	farm    *migrate.Farm
	readers map[string]func(level, statement)
	names   map[string]migrate.OptionName
	groups  int
}

// Read reads configs and fills a farm.
func Read(f *migrate.Farm, files []string) error {
	r := &reader{farm: f, names: migrate.OptionNames()}
	r.readers = r.table()
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
		r.source(all)
		var lease pools.Duration
		r.body(level{scope: &f.Global, lease: &lease}.inside(all), all)
		for _, n := range f.Networks() {
			n.Lease = cmp.Or(n.Lease, lease)
		}
	}
	return nil
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
	prefix6 fixed-prefix6 leasequery execute log on db-time ddns lease parse-vendor-option send-host-names use-eui-64 syslog bootp duplicates
	declines known-clients client-identifier`

// body reads the statements of a block.
func (r *reader) body(l level, all []statement) {
	for i := range all {
		r.statement(l, all[i])
	}
}

// table returns the readers of the statements that say something about machines.
func (r *reader) table() map[string]func(level, statement) {
	return map[string]func(level, statement){
		"option": r.option, "subnet": r.subnet, "subnet6": r.subnet, "shared-network": r.sharedNetwork, "group": r.group,
		"host": r.host, "pool": r.pool, "pool6": r.pool, "range": r.addresses, "range6": r.addresses, "class": r.class, "subclass": r.class,
		"filename": r.filename, "next-server": r.nextServer, "default-lease-time": r.lease, "hardware": r.hardware,
		"fixed-address": r.fixedAddress, "fixed-address6": r.fixedAddress, "host-identifier": r.identifier, "allow": r.permit,
		"deny": r.permit, "ignore": r.permit, "interface": r.serve, "if": r.class, "elsif": r.class, "else": r.class,
		"server-name": r.nextServer, "server-identifier": r.nextServer, "authoritative": r.authoritative, "not": r.authoritative, "switch": r.class,
		"included": func(_ level, s statement) { r.farm.Itself(s.at, "%s is read", s.word(1)) }, "always-broadcast": r.broadcast, "boot-unknown-clients": r.permit,
	}
}

// computed are the statements that set options by what a client sends.
const computed = "set unset append prepend supersede default add log execute on"

// knows reports whether a statement is one that this import knows.
func (r *reader) knows(s statement) bool {
	return r.readers[s.word(0)] != nil || slices.Contains(strings.Fields(inner+" "+computed), s.word(0))
}

func (r *reader) statement(l level, s statement) {
	s.at.Path = s.word(0)
	switch read := r.readers[s.word(0)]; {
	case read != nil:
		read(l, s)
	case s.word(0) == "include-failed":
		r.farm.Unknown(s.at, "the file to include is not read: %s (copy it here)", s.text(1))
	case slices.Contains(strings.Fields(computed), s.word(0)):
		r.farm.Lost(s.at, "drover computes no options: it has them by tag, network and node")
	case r.knows(s):
		r.farm.Lost(s.at, "it is of the program dhcpd, its files, DNS updates or details of its leases")
	default:
		r.farm.Unknown(s.at, "a statement that this import does not know")
	}
}

// authoritative notes what the level has already.
func (r *reader) authoritative(_ level, s statement) {
	r.farm.Itself(s.at, "authoritative of the catch-all pools: drover is for its networks, unless authoritative: false is written")
}

// source adds the statements to what must be in the config or in the report.
func (r *reader) source(all []statement) {
	for _, s := range all {
		text := strings.TrimPrefix(s.text(1), "ethernet ")
		if s.word(0) == "host-identifier" {
			text = s.text(3)
		}
		if !s.has && text != "" {
			r.farm.Source(s.at, text)
		}
		r.source(s.block)
	}
}

// declare reads the definitions of options, which others refer to.
func (r *reader) declare(all []statement) {
	for _, s := range all {
		s.at.Path = s.word(0)
		if s.word(0) == "option" {
			r.define(s)
		}
		r.declare(s.block)
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
	r.farm.Itself(s.at, "option %s is %d", s.word(1), n)
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
		if strings.Contains(name, ".") || s.word(2) != "code" {
			r.farm.Lost(s.at, "an option of a vendor's space (dhcpOptions has sub-options by number: 43.6, 125.311.1, 175.190)")
		}
		return // else it is read before
	}
	name = strings.TrimPrefix(name, "dhcp.")
	if rest, v6 := strings.CutPrefix(name, "dhcp6."); v6 {
		values, _ := optionValues(s.words[min(2, len(s.words)):])
		r.farm.Option6(l.scope, s.at, rest, values)
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

func (r *reader) filename(_ level, s statement) { r.farm.BootFile(s.at, s.word(1)) }

func (r *reader) nextServer(_ level, s statement) { r.farm.BootServer(s.at, s.word(1)) }

func (r *reader) lease(l level, s statement) {
	if s.text(1) == "-1" {
		s.words[1] = "4294967295" // without an end
	}
	path := "subnets[].lease"
	if l.pool != nil {
		path = "pools[].lease"
	}
	if l.lease == nil {
		r.farm.Lost(s.at, "a lease time of a group or a host (lease: of a subnet or a pool)")
	} else if d, ok := r.farm.ParseSeconds(s.at, s.word(1), path); ok {
		*l.lease = d
	}
}

func (r *reader) broadcast(_ level, s statement) {
	r.farm.Lost(s.at, "broadcast: always of a pool")
}

func (r *reader) serve(_ level, s statement) { r.farm.Serve(s.at, s.word(1)) }
