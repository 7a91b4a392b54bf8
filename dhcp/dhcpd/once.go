package dhcpd

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"drover/pools"
)

const (
	// onceLife is how long a packet is that of the server that answered it. A client that
	// asks again after that may be answered by another: the first may have lost its link.
	onceLife = 3 * time.Second

	// maxOnce bounds the packets that are remembered.
	maxOnce = 8192
)

// Once lets one server answer a packet that several receive, because their interfaces are
// on one wire: two answers to a DISCOVER would be two offers. A repeated packet is for the
// server that answered the first. The zero Once is ready for use.
type Once struct {
	mu sync.Mutex
	by map[transaction]claim
}

// transaction identifies a packet, and its repetitions.
type transaction struct {
	mac pools.MAC
	xid uint32
	typ dhcpv4.MessageType
}

type claim struct {
	server *Server
	at     time.Time
}

// claim reports whether the server may answer a request. Copies of relay agents are
// addressed to one interface each, and are all answered.
func (o *Once) claim(s *Server, r *request) bool {
	if o == nil || r.Giaddr.IsValid() {
		return true
	}
	id := transaction{r.MAC, binary.BigEndian.Uint32(r.packet[4:]), r.Type}
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.by[id]
	if ok && c.server != s && r.received.Sub(c.at) < onceLife {
		return false
	}
	if o.by == nil || len(o.by) >= maxOnce {
		o.by = map[transaction]claim{}
	}
	o.by[id] = claim{s, r.received}
	return true
}
