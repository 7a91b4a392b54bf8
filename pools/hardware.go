package pools

import (
	"errors"
	"time"
)

// Messages about hardware on the REST API.

// ChassisStatus is a chassis of the config, and the result of the last query.
type ChassisStatus struct {
	Name     string         `json:"name"`
	Address  string         `json:"address"`
	Via      Via            `json:"via"`
	Pool     string         `json:"pool"`
	Interval Duration       `json:"interval,omitempty"`
	Asking   bool           `json:"asking,omitempty"`   // it is being asked now
	Last     time.Time      `json:"last,omitzero"`      // when it was last asked
	Good     time.Time      `json:"good,omitzero"`      // when that last worked
	Nodes    int            `json:"nodes"`              // in it, when it last worked
	Counts   map[string]int `json:"counts,omitempty"`   // new, same, changed, conflict, missing, incomplete
	Problems []string       `json:"problems,omitempty"` // nodes that were not stored, and why
	Error    string         `json:"error,omitempty"`    // of the last time
	Stopped  bool           `json:"stopped,omitempty"`  // it is not asked again until somebody requests it
}

// PowerOrder asks for machines to be switched: those that are named, or all
// nodes that fit Pool, Chassis and Tag.
type PowerOrder struct {
	Action  string   `json:"action"` // on, off, cycle, pxe, status
	Nodes   []string `json:"nodes,omitempty"`
	Pool    string   `json:"pool,omitempty"`
	Chassis string   `json:"chassis,omitempty"`
	Tag     string   `json:"tag,omitempty"`

	// Wait is the longest wait for a machine to be on, or off; default 2m.
	Wait Duration `json:"wait,omitempty"`
}

// PowerJob is a [PowerOrder] under way, or done.
type PowerJob struct {
	ID      string      `json:"id"`
	Action  string      `json:"action"`
	Who     string      `json:"who"`
	Started time.Time   `json:"started"`
	Ended   time.Time   `json:"ended,omitzero"` // zero: it is under way
	Nodes   []PowerNode `json:"nodes"`
}

// PowerNode is how a job goes for one machine.
type PowerNode struct {
	Name  string    `json:"name"`
	Step  string    `json:"step"`          // waiting, asked, off, pxe once, on, done, failed
	State string    `json:"state"`         // as last seen; unknown is not off
	Time  time.Time `json:"time,omitzero"` // of Step
	Error string    `json:"error,omitempty"`
}

// The first and the last steps of a [PowerNode]; those between are the commands
// that were given.
const (
	PowerWaiting = "waiting"
	PowerDone    = "done"
	PowerFailed  = "failed"
)

// AuditEntry is one action of a person or of drover.
type AuditEntry struct {
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`            // "token from 10.0.0.5", "page from 10.0.0.5", "chassis m1"
	Action string    `json:"action"`         // "power pxe", "add node"
	Node   string    `json:"node,omitempty"` // empty: of more than one
	Job    string    `json:"job,omitempty"`  // ID of a [PowerJob]
	Result string    `json:"result"`         // "begun", "done", a power state, or why not
}

// Refusals of requests about hardware. Test with errors.Is.
var (
	ErrOrder     = errors.New("power order refused")
	ErrNoChassis = errors.New("no such chassis in the config")
)
