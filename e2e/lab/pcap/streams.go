package pcap

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
)

// Flow is one direction of a TCP connection.
type Flow struct{ Src, Dst netip.AddrPort }

// Streams puts TCP segments back in order.
type Streams struct {
	// Open is called at the start of each connection, once for each direction
	// that sends something. What that direction carries is written to what it
	// returns; nil ignores the direction.
	Open func(Flow) io.Writer

	flows map[Flow]*stream
}

// maxAhead bounds how many segments one stream may hold back for want of an
// earlier one.
const maxAhead = 1 << 14

// stream is one direction.
type stream struct {
	w     io.Writer
	next  uint32 // sequence number that is due
	ahead []segment
}

type segment struct {
	seq  uint32
	data []byte
}

// Add takes a packet; what is not TCP is ignored.
func (s *Streams) Add(p Packet) error {
	if !p.TCP {
		return nil
	}
	flow := Flow{p.Src, p.Dst}
	st := s.flows[flow]
	if p.SYN {
		if st != nil && st.next == p.Seq+1 {
			return nil // the SYN again
		}
		if err := s.end(flow); err != nil { // the same ports, a new connection
			return err
		}
		if s.flows == nil {
			s.flows = make(map[Flow]*stream)
		}
		s.flows[flow] = &stream{w: s.Open(flow), next: p.Seq + 1}
		return nil
	}
	if len(p.Payload) == 0 {
		return nil
	}
	if st == nil {
		return fmt.Errorf("%s > %s: its start was not captured", p.Src, p.Dst)
	}
	if err := st.add(p.Seq, p.Payload); err != nil {
		return fmt.Errorf("%s > %s: %w", p.Src, p.Dst, err)
	}
	return nil
}

// add writes what is due and keeps what is ahead. Sequence numbers wrap, hence
// the signed differences (RFC 9293, 3.4).
func (st *stream) add(seq uint32, data []byte) error {
	if st.w == nil {
		return nil
	}
	if int32(seq-st.next) > 0 {
		if len(st.ahead) >= maxAhead {
			return fmt.Errorf("%d segments wait for one that was not captured", len(st.ahead))
		}
		st.ahead = append(st.ahead, segment{seq, slices.Clone(data)})
		return nil
	}
	if err := st.due(seq, data); err != nil {
		return err
	}
	for len(st.ahead) > 0 {
		i := slices.IndexFunc(st.ahead, func(g segment) bool { return int32(g.seq-st.next) <= 0 })
		if i < 0 {
			return nil
		}
		g := st.ahead[i]
		st.ahead = slices.Delete(st.ahead, i, i+1)
		if err := st.due(g.seq, g.data); err != nil {
			return err
		}
	}
	return nil
}

// due writes the part of data that was not written before.
func (st *stream) due(seq uint32, data []byte) error {
	old := st.next - seq
	if int(old) >= len(data) {
		return nil
	}
	st.next = seq + uint32(len(data))
	_, err := st.w.Write(data[old:])
	return err
}

// Close reports whether every stream is whole as far as it was captured.
func (s *Streams) Close() error {
	for flow := range s.flows {
		if err := s.end(flow); err != nil {
			return err
		}
	}
	return nil
}

func (s *Streams) end(flow Flow) error {
	st := s.flows[flow]
	delete(s.flows, flow)
	if st != nil && len(st.ahead) > 0 {
		return fmt.Errorf("%s > %s: a segment was not captured", flow.Src, flow.Dst)
	}
	return nil
}
