// Package match checks the conditions by which machines are known: those of catch-all pools
// and loader rules, which describe kinds of machines ([Kind]), and those of nodes, which
// identify one ([Node], [IdentityOf]).
//
// It does not know lines and files of the config, and no machine.
package match

import (
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// Limits of texts, in bytes.
const (
	maxOption   = 3 * 255 // written as hex
	maxReported = 2*64 + 1
)

// text is one of the texts of a Match.
type text struct{ name, value string }

// options returns the texts that DHCP options are compared with.
func options(m pools.Match) []text {
	return []text{
		{"clientID", m.ClientID}, {"circuitID", m.CircuitID}, {"remoteID", m.RemoteID},
		{"subscriberID", m.SubscriberID}, {"class", m.Class}, {"userClass", m.UserClass},
	}
}

// Kind calls fail with each mistake in the conditions of a pool or of a loader rule, and
// the field that it is in. The errors have hints.
func Kind(m pools.Match, fail func(field string, err error)) {
	for _, t := range options(m) {
		if len(t.value) > maxOption {
			fail(t.name, pools.Hint("an option has 255 bytes at most", "%s has %d characters", t.name, len(t.value)))
		} else {
			fail(t.name, octets(t))
		}
	}
	fail("mac", mac(m.MAC))
	reported(m, fail)
	if strings.Trim(strings.ToLower(m.UUID), "0123456789abcdef-*") != "" || len(m.UUID) > 2*36 {
		fail("uuid", pools.Hint("write 4c4c4544-0034-4210-8035-b4c04f4d3132, or parts of it with *", "%q is not a UUID", m.UUID))
	} else if m.UUID != "" && !strings.Contains(m.UUID, "*") {
		_, err := resolve.ParseUUID(m.UUID)
		fail("uuid", err)
	}
	if m.Firmware != "" {
		if _, err := pools.ParseFirmware(string(m.Firmware)); err != nil {
			fail("firmware", pools.Hint(mistake.Hint(string(m.Firmware), names(pools.Firmwares), ""), "unknown firmware %q", m.Firmware))
		}
	}
}

// mac returns the error of the condition of a MAC.
func mac(text string) error {
	if s := resolve.MACPattern(text); s != "" && !strings.Contains(s, "*") {
		if _, err := pools.ParseMAC(text); err == nil && len(text) == 17 {
			return nil
		}
	} else if groups := strings.Split(s, ":"); len(groups) <= 6 && !slices.ContainsFunc(groups, badGroup) {
		return nil
	}
	return pools.Hint("write 94:57:a5:*, or all of a MAC", "%q describes no MAC addresses", text)
}

// badGroup reports whether a text cannot be two digits of a MAC, or a part of them with a *.
func badGroup(s string) bool {
	digits := strings.ReplaceAll(s, "*", "")
	return len(digits) > 2 || s == digits && len(s) == 1 || strings.Trim(digits, "0123456789abcdef") != ""
}

// reported checks the texts that the hardware is compared with.
func reported(m pools.Match, fail func(field string, err error)) {
	for _, t := range []text{{"serial", m.Serial}, {"dmi", m.DMI}, {"lldp", m.LLDP}} {
		switch {
		case len(t.value) > maxReported:
			fail(t.name, pools.Hint("drover keeps 64 bytes of a text that a machine reports: end it with *", "%s has %d characters", t.name, len(t.value)))
		case strings.TrimSpace(t.value) != t.value:
			fail(t.name, pools.Hint("remove the spaces: drover unknown describe MAC shows what a machine reported", "%s %q begins or ends with a space", t.name, t.value))
		case t.name == "lldp" && t.value != "" && !strings.ContainsAny(t.value, " *") && !strings.HasPrefix(t.value, "hex:"):
			fail(t.name, pools.Hint("write the switch, a space, and the port: leaf-7 ge-0/0/7, or leaf-7 *", "lldp %q has no port", t.value))
		default:
			fail(t.name, octets(t))
		}
	}
}

// octets returns the error of a text in hex.
func octets(t text) error {
	_, err := resolve.Octets(t.value)
	if err == nil {
		return nil
	}
	msg, hint := mistake.Explain(t.name, err)
	return pools.Hint(hint, "%s", msg)
}

func names(list []pools.Firmware) []string {
	out := make([]string, len(list))
	for i, f := range list {
		out[i] = string(f)
	}
	return out
}

// Node returns the first mistake in the conditions of a node. They have no wildcards: they
// are keys of an index. The error has a hint.
func Node(m pools.Match) error {
	for _, t := range options(m) {
		if strings.Contains(t.value, "*") {
			return pools.Hint("write it in full; a * itself is hex:2a", "%s %q has a *: a node is known by whole values", t.name, t.value)
		}
		if err := octets(t); err != nil {
			return err
		}
	}
	if err := mac(m.MAC); err != nil {
		return err
	}
	for _, id := range []struct {
		value string
		parse func(string) (string, error)
	}{{m.UUID, resolve.ParseUUID}, {m.Serial, resolve.ParseSerial}} {
		if _, err := id.parse(id.value); id.value != "" && err != nil {
			return err
		}
	}
	if m.Class != "" || m.UserClass != "" || m.Firmware != "" || !m.Arch.IsZero() || m.DMI != "" || m.LLDP != "" {
		return pools.Hint("for a kind of machine use the match of a catch-all pool", "match names a kind of machine; a node is one machine")
	}
	return nil
}

// WithMACs returns the first mistake in the conditions of a node with these MACs, or without any. A
// MAC is no identity: all machines with such a MAC would be the node. The error has a hint.
func WithMACs(m pools.Match, macs []pools.MAC) error {
	if m.MAC == "" {
		return nil
	}
	if len(macs) == 0 && m == (pools.Match{MAC: m.MAC}) {
		return pools.Hint("write the whole MAC in macs, or add a clientID or the port; for a kind of machine use the match of a catch-all pool", "match has a mac alone, which several machines can have")
	}
	for _, own := range macs {
		if !resolve.CoversMACs(m.MAC, own.String()) {
			return pools.Hint("it would get no answer", "its MAC %s does not match %q", own, m.MAC)
		}
	}
	return nil
}

// Covers reports whether the conditions of one pool take all machines that those of another take,
// as far as their texts show.
func Covers(m, other pools.Match) bool {
	if m.MAC != "" && other.MAC != "" && resolve.CoversMACs(m.MAC, other.MAC) {
		if m == (pools.Match{MAC: m.MAC}) {
			return true
		}
		m.MAC = other.MAC
	}
	return m.IsZero() || m == other
}

// Identity is the identity of a node without MACs, as bytes: its client identifier, its
// UUID, its serial number, or the circuit, remote and subscriber identifiers of its relay
// agent.
type Identity [6]string

// IdentityOf returns the identity of a node without MACs that has such conditions.
func IdentityOf(m pools.Match) (id Identity) {
	uuid, _ := resolve.ParseUUID(m.UUID)
	serial, _ := resolve.ParseSerial(m.Serial)
	switch {
	case m.ClientID != "":
		id[0], _ = resolve.Octets(m.ClientID)
	case uuid != "":
		id[4] = uuid
	case serial != "":
		id[5] = serial
	default:
		for i, s := range []string{m.CircuitID, m.RemoteID, m.SubscriberID} {
			id[i+1], _ = resolve.Octets(s)
		}
	}
	return id
}
