package tftp

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Drop is the reason why a packet gets no answer, or why the answer is late. The reasons are
// few, so that they can label a metric.
type Drop string

// The reasons. A request that finds no room is a [Transfer] with an error.
const (
	Overflow   Drop = "receive buffer full"          // the kernel dropped packets before the server could read them
	Broadcast  Drop = "broadcast"                    // sent to all hosts (RFC 1123, section 4.2.3.5)
	NotHere    Drop = "not a boot address"           // see Server.AnswersAt
	NotServed  Drop = "network not served"           // see Server.Serves
	Malformed  Drop = "malformed"                    // neither a request, nor a packet of a transfer
	Unsent     Drop = "not sent"                     // the kernel refused to send a packet: it is sent again later
	Unproved   Drop = "client has not proved itself" // see credit: the answer is larger than what it has sent
	FileIsSlow Drop = "file is slow"                 // a client waits for the file
)

// slowFile is the time that a client waits for a file before the log says so. Firmware asks
// again after some seconds, and gives up after some tens of seconds.
const slowFile = 5 * time.Second

// drop reports packets that get no answer.
func (s *Server) drop(why Drop, packets int) {
	if s.OnDrop != nil {
		s.OnDrop(why, packets)
	}
}

// warns reports whether to log a warning of a reason.
func (s *Server) warns(why Drop) bool { return s.failed.Allow(slog.LevelWarn, string(why)) }

// answers reports whether a packet that came to an address may be answered at all.
func (s *Server) answers(client netip.AddrPort, o origin) bool {
	switch {
	case !o.addr.IsValid():
		s.drop(Broadcast, 1)
	case s.AnswersAt != nil && !s.AnswersAt(o.addr):
		s.drop(NotHere, 1)
		if s.warns(NotHere) {
			s.log.Warn("tftp: no answer at an address of this host that is no boot address: see subnets[].address", "client", client.Addr(), "address", o.addr)
		}
	case s.Serves != nil && !s.Serves(client.Addr().WithZone("")):
		s.drop(NotServed, 1)
		if s.warns(NotServed) {
			s.log.Warn("tftp: no answer to a network that is not served: see server.clients", "client", client.Addr())
		}
	default:
		return true
	}
	return false
}

// overflowed reports packets that the kernel dropped: total is how many so far, before is
// how many of them were reported. It returns total.
func (s *Server) overflowed(total, before uint32) uint32 {
	lost := total - before
	if lost == 0 {
		return total
	}
	s.drop(Overflow, int(lost))
	if s.warns(Overflow) {
		s.log.Warn("tftp: requests came faster than they could be read, the kernel dropped some", "packets", lost)
	}
	return total
}

// unsent records that the kernel refused a packet. The client gets it again after a timeout.
func (w *worker) unsent(s *session, err error) {
	w.server.drop(Unsent, 1)
	if s.Unsent++; s.Unsent > 1 || !w.server.warns(Unsent) {
		return
	}
	log := w.server.log.With("client", s.Client, "file", s.File, "error", err)
	if errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EINVAL) {
		log = log.With("hint", "a full neighbor table has this error: see net.ipv4.neigh.default.gc_thresh3")
	}
	log.Warn("tftp: the kernel does not send a packet, it is sent again later")
}

// lags reports a client that waits for its file for long, once.
func (w *worker) lags(s *session, now time.Time) {
	since := s.waits
	if !s.opened {
		since = s.begun
	}
	if s.slow || since.IsZero() || now.Sub(since) < slowFile {
		return
	}
	s.slow = true
	w.server.drop(FileIsSlow, 1)
	if w.server.warns(FileIsSlow) {
		w.server.log.Warn("tftp: a client waits for a file that is slow to open or to read", "client", s.Client, "file", s.File, "waited", now.Sub(since).Round(time.Second))
	}
}
