package tftp

import "time"

// progress is the state of a transfer in blocks: those that the client has, those that
// are in flight, and the time to send them again. It has no clock: callers pass the
// time.
//
// Blocks are numbered from 1 without a limit; block 0 is the OACK. In packets the numbers
// have 16 bits and roll over to 0.
type progress struct {
	options
	last  int64 // the block that ends the file: it is shorter than the others
	acked int64 // the client has all up to this one; -1 when it has not even the OACK
	sent  int64 // the highest that was ever sent
	again bool  // the window was sent before: its ACK is no measure of the network

	sentAt time.Time
	due    time.Time     // when to send again
	tries  int           // how often that happened since the client moved
	rtt    time.Duration // from a window to its ACK, smoothed; 0: not known yet
}

// action is the next action of a port for a transfer.
type action int

const (
	wait   action = iota
	send          // the blocks of the window, or the OACK
	finish        // the transfer has ended
)

const (
	firstWait = time.Second            // firmware gives up a packet within a second or two
	leastWait = 250 * time.Millisecond // a ROM that writes to slow memory is no lost packet
	mostWait  = 8 * time.Second
	maxTries  = 6
)

// newProgress returns the state before the first packet.
func newProgress(o options, size int64, withOack bool) progress {
	p := progress{options: o, last: size/int64(o.block) + 1}
	if withOack {
		p.acked = -1
	}
	p.sent = p.acked
	return p
}

// todo returns the first and the last block to send: a window, or the OACK alone.
func (p *progress) todo() (from, to int64) {
	if p.acked < 0 {
		return 0, 0
	}
	return p.acked + 1, min(p.acked+int64(p.window), p.last)
}

// wasSent records that the window has been sent.
func (p *progress) wasSent(now time.Time) {
	_, to := p.todo()
	p.sent = max(p.sent, to)
	p.sentAt = now
	p.due = now.Add(p.resendAfter())
}

// wasHeld records that the window was due, and could not be sent.
func (p *progress) wasHeld(now time.Time) { p.due = now.Add(p.resendAfter()) }

// resendAfter returns the time after which the blocks in flight count as lost. It doubles
// with each try.
func (p *progress) resendAfter() time.Duration {
	wait := p.timeout
	if wait == 0 || p.acked < 0 {
		wait = firstWait
		if p.rtt > 0 {
			wait = min(max(8*p.rtt, leastWait), firstWait)
		}
	}
	return min(wait<<p.tries, max(wait, mostWait))
}

// ack handles an ACK.
//
// After an ACK of a block inside the window the client lacks the next block (RFC 7440
// section 4), so the window moves there.
func (p *progress) ack(block uint16, now time.Time) action {
	at := p.acked + int64(block-uint16(p.acked))
	switch {
	case at > p.sent: // an old one that was delayed
		return wait
	case at == p.acked:
		return p.ackAgain(now)
	}
	if at == p.sent && !p.again {
		p.measure(now.Sub(p.sentAt))
	}
	p.again = at < p.sent
	p.acked, p.tries = at, 0
	if p.acked == p.last {
		return finish
	}
	return send
}

// ackAgain handles a repeated ACK. Answering each of them would double every packet for
// the rest of the file (the sorcerer's apprentice syndrome, RFC 1123 section 4.2.3.1), so
// a client without a window gets no answer.
//
// A client with a window also repeats its ACK if the first block of the window is lost.
// That ACK comes a round trip after the window, while a packet that the network has
// duplicated comes at once. After the window was sent again, a repeated ACK within two
// round trips belongs to the previous window.
func (p *progress) ackAgain(now time.Time) action {
	quiet := p.rtt / 2
	if p.again {
		quiet = 2 * p.rtt
	}
	if p.window == 1 || p.acked < 0 || p.rtt == 0 || now.Sub(p.sentAt) < quiet {
		return wait
	}
	p.again = true
	return send
}

// measure adds a sample of the round-trip time.
func (p *progress) measure(sample time.Duration) {
	sample = max(sample, 1)
	if p.rtt == 0 {
		p.rtt = sample
	}
	p.rtt += (sample - p.rtt) / 8
}

// late sends the window again after a timeout, and gives up after maxTries.
func (p *progress) late(now time.Time) action {
	if now.Before(p.due) {
		return wait
	}
	if p.tries++; p.tries >= maxTries {
		return finish
	}
	p.again = true
	return send
}
