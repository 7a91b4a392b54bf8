package pools

import (
	"errors"
	"time"
)

// RetiredNode is a node that the config has lost. It keeps its name, its boots and its addresses
// until its time is over: a machine that runs as this node renews its address, and is as it
// was when the node is declared again. A new boot of the machine is that of unknown hardware.
type RetiredNode struct {
	PoolNode
	From  string    `json:"from"`           // where it was declared: "drover.yaml:41"
	Since time.Time `json:"since"`          // when the config lost it
	Until time.Time `json:"until,omitzero"` // when it is forgotten, by the current server.retire
}

// Retention is how long something is kept: a [Duration], or 0 for not at all.
type Retention time.Duration

// D returns the retention as a time.Duration.
func (r Retention) D() time.Duration { return time.Duration(r) }

// String returns "0", or the form of [Duration.String].
func (r Retention) String() string {
	if r == 0 {
		return "0"
	}
	return Duration(r).String()
}

// MarshalText writes the form of [Retention.String].
func (r Retention) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads 0, or a duration as [Duration.UnmarshalText] does.
func (r *Retention) UnmarshalText(b []byte) error {
	if string(b) == "0" {
		*r = 0
		return nil
	}
	return (*Duration)(r).UnmarshalText(b)
}

// ErrNotRetired is the error of a name that no retired node has.
var ErrNotRetired = errors.New("no retired node has that name")
