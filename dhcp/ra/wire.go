package ra

import "time"

// Result says what became of a packet.
type Result string

// The results of solicitations.
const (
	Answered    Result = "answered"
	OtherRouter Result = "left to another router"
	Listening   Result = "listening" // the server has just begun to look for other routers
	TooOften    Result = "too often" // its machine, or all of them, have reached a limit
	Invalid     Result = "invalid"   // by RFC 4861, section 6.1; of advertisements too
	Failed      Result = "not sent"
)

// The other results of advertisements.
const (
	Heard Result = "router" // of another router
	Idle  Result = "empty"  // configures nothing: of another server of this kind, or of a router that ceases
)

// Packet is a packet that was received, for metrics.
type Packet struct {
	Type   string // solicitation, advertisement, or empty for another one
	Result Result
}

const (
	// settle is how long the other routers have to answer the first solicitation before
	// the server answers in their place. RFC 4861 gives them half a second.
	settle = time.Second
	// asks and askEvery are MAX_RTR_SOLICITATIONS and RTR_SOLICITATION_INTERVAL.
	asks     = 3
	askEvery = 4 * time.Second
	// askAgain is when a known router is asked again.
	askAgain = time.Minute
	// multicastEvery is MIN_DELAY_BETWEEN_RAS, for answers to all hosts.
	multicastEvery = 3 * time.Second
	// repeat is when an advertisement with content is sent again unsolicited.
	repeat = 200 * time.Second
)

// wire decides what to send on one interface. One goroutine uses it.
type wire struct {
	own     station
	content Advertisement
	routers routers
	limits  *limits

	begun         time.Time
	askAt         time.Time // when to solicit routers; zero: never
	asksLeft      int
	multicastAt   time.Time // when to answer all hosts; zero: never
	lastMulticast time.Time
}

func newWire(own station, content Advertisement, l *limits, now time.Time) *wire {
	return &wire{own: own, content: content, limits: l, begun: now, askAt: now, asksLeft: asks}
}

// receive takes a frame. It returns the frame to be sent, or nil.
func (w *wire) receive(f []byte, now time.Time) ([]byte, Packet) {
	m, ok := parse(f)
	switch {
	case !ok || m.from.mac == w.own.mac || m.to.mac != w.own.mac && m.to.mac[0]&1 == 0:
		return nil, Packet{} // on its way between other hosts, or our own
	case m.typ == typeAdvertisement:
		return nil, Packet{"advertisement", w.hear(m, now)}
	}
	reply, result := w.solicited(m, now)
	return reply, Packet{"solicitation", result}
}

// hear takes an advertisement of another host.
func (w *wire) hear(m message, now time.Time) Result {
	if !m.valid {
		return Invalid
	}
	before := len(w.routers.known)
	switch {
	case w.routers.hear(m, now):
		w.askAt, w.asksLeft = now.Add(askAgain), 0
		return Heard
	case len(w.routers.known) < before: // it has ceased: is there another one?
		w.askAt, w.asksLeft = now, asks
	}
	return Idle
}

// solicited answers a solicitation.
func (w *wire) solicited(m message, now time.Time) ([]byte, Result) {
	switch {
	case !m.valid:
		return nil, Invalid
	case w.content.Empty() && len(w.routers.known) > 0:
		return nil, OtherRouter
	case w.content.Empty() && now.Sub(w.begun) < settle:
		return nil, Listening
	case !w.limits.allow(m.from.mac, now):
		return nil, TooOften
	case !m.from.addr.IsUnspecified():
		return frame(w.own, m.from, w.content.body(w.own.mac)), Answered
	}
	if next := w.lastMulticast.Add(multicastEvery); now.Before(next) {
		w.multicastAt = next // one answer for all that solicit until then
		return nil, Answered
	}
	return w.multicast(now), Answered
}

// multicast returns the advertisement for all hosts.
func (w *wire) multicast(now time.Time) []byte {
	w.lastMulticast, w.multicastAt = now, time.Time{}
	return frame(w.own, allNodes(), w.content.body(w.own.mac))
}

// tick returns the frames that are due.
func (w *wire) tick(now time.Time) (send [][]byte) {
	w.routers.expire(now)
	if !w.askAt.IsZero() && !now.Before(w.askAt) {
		send = append(send, solicitation(w.own))
		w.asksLeft--
		switch {
		case len(w.routers.known) > 0:
			w.askAt = now.Add(askAgain)
		case w.asksLeft > 0:
			w.askAt = now.Add(askEvery)
		default:
			w.askAt = time.Time{}
		}
	}
	if !w.content.Empty() && now.Sub(w.lastMulticast) >= repeat {
		w.multicastAt = now
	}
	if w.multicastAt.IsZero() || now.Before(w.multicastAt) {
		return send
	}
	if w.content.Empty() && len(w.routers.known) > 0 {
		w.multicastAt = time.Time{}
		return send
	}
	return append(send, w.multicast(now))
}

// next returns when tick is to be called next: at limit, or earlier.
func (w *wire) next(limit time.Time) time.Time {
	for _, t := range []time.Time{w.askAt, w.multicastAt} {
		if !t.IsZero() && t.Before(limit) {
			limit = t
		}
	}
	return limit
}
