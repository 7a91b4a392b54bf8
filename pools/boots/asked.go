package boots

import (
	"net/netip"

	"drover/pools"
	"drover/pools/resolve"
)

// asked is what the firmware of a machine said in the DISCOVER of a boot: all that decides what it
// gets. Texts are bytes as received.
type asked struct {
	Firmware  pools.Firmware `json:"firmware,omitempty"`
	IPXE      bool           `json:"ipxe,omitempty"`
	IPv6      bool           `json:"ipv6,omitempty"`
	Relay     netip.Addr     `json:"relay,omitzero"`
	Class     []byte         `json:"class,omitempty"`
	UserClass []byte         `json:"userClass,omitempty"`
	ClientID  []byte         `json:"clientID,omitempty"`
	UUID      []byte         `json:"uuid,omitempty"`
	Circuit   []byte         `json:"circuit,omitempty"`
	Remote    []byte         `json:"remote,omitempty"`
}

// maxAsked bounds each text, in bytes: two of them fit into the option of a relay agent. A longer
// one is left out.
const maxAsked = 120

// ask notes the query of a DISCOVER. The first program of a boot counts: it loads the others.
func (b *boot) ask(q resolve.Query) {
	if b.Asked != nil && (q.IPXE || !b.Asked.IPXE) {
		return
	}
	text := func(s string) []byte {
		if s == "" || len(s) > maxAsked {
			return nil
		}
		return []byte(s)
	}
	b.Asked = &asked{
		Firmware: q.Firmware, IPXE: q.IPXE, IPv6: q.IPv6, Class: text(q.Class), UserClass: text(q.UserClass), ClientID: text(q.ClientID),
		UUID: text(q.UUID), Circuit: text(q.CircuitID), Remote: text(q.RemoteID),
	}
	if q.Relayed {
		b.Asked.Relay = q.Link
	}
}

// Asked returns how the firmware of a machine asked in its newest boot; false if no DISCOVER of it is
// known.
func (t *Table) Asked(mac pools.MAC) (q resolve.Query, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.newest(mac)
	if b == nil || b.Asked == nil {
		return q, false
	}
	a := b.Asked
	return resolve.Query{
		MAC: mac, Firmware: a.Firmware, IPXE: a.IPXE, IPv6: a.IPv6, Link: a.Relay, Relayed: a.Relay.IsValid(), Class: string(a.Class), UserClass: string(a.UserClass),
		ClientID: string(a.ClientID), UUID: string(a.UUID), CircuitID: string(a.Circuit), RemoteID: string(a.Remote),
	}, true
}
