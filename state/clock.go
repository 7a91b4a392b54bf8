package state

import "time"

// maxStep is the step of the clock that needs no correction of the leases.
const maxStep = time.Minute

// maxLate is the time by which one call can be later than the next one by their wall
// clocks. Where there is no monotonic clock, a longer one means that the clock was set.
const maxLate = 24 * time.Hour

// maxTerm limits the term of a lease. The config allows ten years.
const maxTerm = 20 * 365 * 24 * time.Hour

// within returns the end of a lease, but at most its term from now. The result is on
// the monotonic clock if now is, so that a step of the wall clock does not change the
// time that is left.
func within(end time.Time, term time.Duration, now time.Time) time.Time {
	return now.Add(min(end.Sub(now), term))
}

// follow corrects all leases if the clock was set: each keeps the time that is left,
// and none has more left than its term. So a lease that was stored while the clock was
// years ahead does not last for years. It requires that the lock is held.
func (l *Leases) follow(now time.Time) {
	if l.clock.IsZero() {
		l.clock = now
	}
	elapsed := now.Sub(l.clock)
	step := now.Round(0).Sub(l.clock.Round(0)) - elapsed // 0 without a monotonic clock
	if step.Abs() <= maxStep && (elapsed >= -maxLate || isMonotonic(now) && isMonotonic(l.clock)) {
		if elapsed > 0 {
			l.clock = now
		}
		return
	}
	l.clock = now
	l.offers = newOffers()
	for _, e := range l.byAddr {
		e.end = within(e.end, e.term, now)
		e.due, e.Expires = e.free(), e.end.UTC()
	}
	l.queues.restore()
	l.bad.restore()
	clear(l.full)
	l.engine.Rewrite()
}

func isMonotonic(t time.Time) bool { return t != t.Round(0) }
