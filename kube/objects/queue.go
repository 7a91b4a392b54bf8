package objects

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"

	"drover/pools/config/declared"
)

// Limits of the writes of a server. An admin cluster on small hosts writes some 600 objects
// per second in all; what drover writes is for people, and can wait.
const (
	writeRate  = 10 // per second
	writeBurst = 50

	// stepDelay is the time in which several steps of a boot become one write.
	stepDelay = 3 * time.Second
	// retryDelay is the time after which a write that failed is tried again.
	retryDelay = 10 * time.Second
)

// queue has the objects whose status may differ from what it should be. Several adds of one
// object become one.
type queue struct {
	workqueue.TypedDelayingInterface[declared.Key]
	rate *rate.Limiter
}

func newQueue() *queue {
	return &queue{workqueue.NewTypedDelayingQueue[declared.Key](), rate.NewLimiter(writeRate, writeBurst)}
}

// add adds an object after a delay, unless it waits for less already.
func (q *queue) add(k declared.Key, after time.Duration) { q.AddAfter(k, after) }
