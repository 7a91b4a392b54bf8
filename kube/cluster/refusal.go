package cluster

import (
	"errors"
	"time"

	"golang.org/x/time/rate"
)

// refusedFor is the time for which [Cluster.Check] returns the last refused answer.
const refusedFor = 10 * time.Minute

func newRates() (answers, events *rate.Limiter) {
	return rate.NewLimiter(answerRate, answerBurst), rate.NewLimiter(eventRate, eventBurst)
}

// charge counts a part of an answer. The error is for answers that come too fast.
func (c *Cluster) charge(cost, events int) error {
	// A reservation of more than the burst would count as none.
	r := c.rate.ReserveN(time.Now(), min(cost, answerBurst))
	if r.Delay() > answerBurst/answerRate*time.Second {
		return errors.New("all its answers together are too large")
	}
	if events > 0 && !c.events.AllowN(time.Now(), events) {
		return errors.New("its watches send too many events")
	}
	return nil
}

// refuse records an answer as refused, and returns the error of it.
func (c *Cluster) refuse(request string, why error) error {
	err := &RefusedError{Why: request + ": " + why.Error()}
	c.mu.Lock()
	c.refused, c.refusedAt = err, c.now()
	c.mu.Unlock()
	if c.OnRefused != nil {
		c.OnRefused(err)
	}
	return err
}

// lastRefused returns the error of an answer that was refused recently, or nil.
func (c *Cluster) lastRefused() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil || c.now().Sub(c.refusedAt) > refusedFor {
		return nil
	}
	return c.refused
}

// noteSilence records that the API server does not answer now.
func (c *Cluster) noteSilence() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silentAt = c.now()
}

// LastSilent returns the last time at which the API server was known not to answer, as
// after five requests in a row. It is zero if it always did.
func (c *Cluster) LastSilent() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silentAt
}
