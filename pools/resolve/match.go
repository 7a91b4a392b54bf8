package resolve

import (
	"encoding/hex"
	"slices"
	"strings"

	"drover/pools"
)

// pattern is a text in which * stands for any run of characters. It holds the pieces
// between the stars. The zero pattern matches everything.
type pattern []string

// newPattern reads a text with stars, or hex: and bytes.
func newPattern(s string) pattern {
	if s == "" {
		return nil
	}
	if !strings.HasPrefix(s, "hex:") {
		return strings.Split(s, "*")
	}
	b, _ := Octets(s) // package config has checked it
	return pattern{b}
}

func (p pattern) matches(s string) bool {
	switch len(p) {
	case 0:
		return true
	case 1:
		return p[0] == s
	}
	first, last := p[0], p[len(p)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, piece := range p[1 : len(p)-1] {
		_, rest, ok := strings.Cut(s, piece)
		if !ok {
			return false
		}
		s = rest
	}
	return true
}

// Fits reports whether a text fits one of these patterns, in which * stands for any run of characters.
func Fits(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return newPattern(p).matches(s) })
}

// Octets returns the bytes of a value of [pools.Match]: those written as hex:0a0b or
// hex:0a:0b, else the text itself.
func Octets(s string) (string, error) {
	digits, ok := strings.CutPrefix(s, "hex:")
	if !ok {
		return s, nil
	}
	b, err := hex.DecodeString(strings.ReplaceAll(digits, ":", ""))
	if err != nil || len(b) == 0 {
		return "", pools.Hint("write hex:0a0b or hex:0a:0b", "%q is not bytes in hex", s)
	}
	return string(b), nil
}

// MACPattern returns the condition of a MAC in its one form: 94:57:a5:* for 94-57-A5-*-*-*.
func MACPattern(s string) string {
	s = strings.ReplaceAll(strings.ToLower(s), "-", ":")
	for strings.HasSuffix(s, ":*:*") {
		s = s[:len(s)-2]
	}
	return s
}

// CoversMACs reports whether a condition, which is not empty, takes all MACs that the other takes.
func CoversMACs(condition, other string) bool {
	condition, other = MACPattern(condition), MACPattern(other)
	prefix, rest, _ := strings.Cut(condition, "*")
	return condition == other || condition == prefix+"*" && rest == "" && strings.HasPrefix(other, prefix)
}

// matcher is a compiled [pools.Match], or the compiled conditions of a loader rule.
type matcher struct {
	clientID, circuitID, remoteID, subscriberID, class, userClass pattern
	mac, uuid                                                     pattern // of its text
	serial                                                        string  // 4 bytes, of a Raspberry Pi
	reported, dmi, lldp                                           pattern // of the hardware; reported is its serial number
	firmware                                                      pools.Firmware
	arch                                                          pools.Arch
}

// newMatcher compiles a match that package config has checked.
func newMatcher(m pools.Match) *matcher {
	serial, _ := ParseSerial(m.Serial)
	return &matcher{
		mac: newPattern(MACPattern(m.MAC)), uuid: newPattern(strings.ToLower(m.UUID)), serial: serial,
		reported: newPattern(m.Serial), dmi: newPattern(m.DMI), lldp: newPattern(m.LLDP),
		firmware: m.Firmware, arch: m.Arch,
		clientID: newPattern(m.ClientID), circuitID: newPattern(m.CircuitID), remoteID: newPattern(m.RemoteID),
		subscriberID: newPattern(m.SubscriberID), class: newPattern(m.Class), userClass: newPattern(m.UserClass),
	}
}

// matches reports whether the client meets all conditions.
func (m *matcher) matches(q *Query) bool {
	return (m.firmware == "" || m.firmware == q.Firmware) &&
		(m.arch.IsZero() || slices.Contains(q.Archs, m.arch.Code())) &&
		(m.mac == nil || m.mac.matches(q.MAC.String())) && m.class.matches(q.Class) && m.userClass.matches(q.UserClass) &&
		m.matchesClientID(q.ClientID) && m.circuitID.matches(q.CircuitID) &&
		m.remoteID.matches(q.RemoteID) && m.subscriberID.matches(q.SubscriberID) && m.matchesMachine(q) && m.matchesHardware(q.Hardware)
}

// admits is matches for a client that is known by its MAC. Of the programs of a machine
// only firmware and iPXE send option 97, so its conditions hold for them alone.
func (m *matcher) admits(q *Query) bool {
	if q.UUID != "" {
		return m.matches(q)
	}
	other := *m
	other.uuid, other.serial, other.reported = nil, "", nil
	return other.matches(q)
}

// located reports whether the client meets the conditions of its place: what its relay
// agent adds. A renewal may bypass the relay agent.
func (m *matcher) located(q *Query) bool {
	if q.Renewing && q.CircuitID == "" && q.RemoteID == "" && q.SubscriberID == "" {
		return true
	}
	return m.circuitID.matches(q.CircuitID) && m.remoteID.matches(q.RemoteID) && m.subscriberID.matches(q.SubscriberID)
}

func (q *Query) pxeClass() bool  { return strings.HasPrefix(q.Class, "PXEClient") }
func (q *Query) httpClass() bool { return strings.HasPrefix(q.Class, "HTTPClient") }

func (m *matcher) matchesClientID(id string) bool {
	return m.clientID.matches(id) || m.clientID.matches(plainID(id))
}

// plainID returns a client identifier without its type byte if the type is 0. Type 0
// means that a name follows instead of a hardware address (RFC 2132, section 9.14).
func plainID(id string) string {
	if strings.HasPrefix(id, "\x00") {
		return id[1:]
	}
	return id
}

// relayID identifies the port of a client, as its relay agent sends it: circuit,
// remote and subscriber identifier.
type relayID [3]string

// identities is the index of the nodes without MACs.
type identities struct {
	client map[string]*entry
	uuid   map[string]*entry // by 16 bytes, in both orders
	serial map[string]*entry // by 4 bytes, in both orders
	relay  map[relayID]*entry
	shapes []relayID // the combinations of parts that identify a node, see [relayID.shape]
}

func newIdentities() identities {
	return identities{client: map[string]*entry{}, uuid: map[string]*entry{}, serial: map[string]*entry{}, relay: map[relayID]*entry{}}
}

// add adds a node. Package config has checked that the identity exists and is unique.
func (ids *identities) add(e *entry) {
	client, _ := Octets(e.Match.ClientID)
	if client != "" {
		ids.client[client] = e
		return
	}
	if id, err := ParseUUID(e.Match.UUID); err == nil {
		sent, swapped := uuidOrders(id)
		ids.uuid[sent], ids.uuid[swapped] = e, e
		return
	}
	if serial, err := ParseSerial(e.Match.Serial); err == nil {
		ids.serial[serial], ids.serial[reversed(serial)] = e, e
		return
	}
	var id relayID
	for i, text := range []string{e.Match.CircuitID, e.Match.RemoteID, e.Match.SubscriberID} {
		id[i], _ = Octets(text)
	}
	ids.relay[id] = e
	if shape := id.shape(); !slices.Contains(ids.shapes, shape) {
		ids.shapes = append(ids.shapes, shape)
		slices.SortFunc(ids.shapes, func(a, b relayID) int { return b.parts() - a.parts() }) // the most specific first
	}
}

// find returns the node that the query identifies, and the names of the options that
// identified it.
func (ids *identities) find(q *Query) (*entry, string) {
	if q.ClientID != "" {
		if e := ids.client[q.ClientID]; e != nil {
			return e, "clientID"
		}
		if e := ids.client[plainID(q.ClientID)]; e != nil {
			return e, "clientID"
		}
	}
	if e := ids.uuid[q.UUID]; e != nil {
		return e, "uuid"
	}
	if serial, ok := serialOf(q.UUID); ok && ids.serial[serial] != nil {
		return ids.serial[serial], "serial"
	}
	for _, shape := range ids.shapes {
		id := relayID{q.CircuitID, q.RemoteID, q.SubscriberID}
		for i, mark := range shape {
			if mark == "" {
				id[i] = ""
			}
		}
		if e := ids.relay[id]; e != nil && id.shape() == shape {
			return e, shape.names()
		}
	}
	return nil, ""
}

// shape returns "x" for each part that is set, and "" for the others.
func (id relayID) shape() relayID {
	for i, part := range id {
		id[i] = "x"[:min(len(part), 1)]
	}
	return id
}

// parts returns the number of parts that are set in a shape.
func (id relayID) parts() int { return len(id[0]) + len(id[1]) + len(id[2]) }

func (id relayID) names() string {
	var names []string
	for i, name := range []string{"circuitID", "remoteID", "subscriberID"} {
		if id[i] != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
