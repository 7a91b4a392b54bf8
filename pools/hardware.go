package pools

import (
	"errors"
	"time"
)

// The messages about hardware on the REST API.

// ChassisStatus is a chassis of the config, with the result of its last reading.
type ChassisStatus struct {
	Name     string         `json:"name"`
	Address  string         `json:"address"`
	Via      Via            `json:"via"`
	Pool     string         `json:"pool"`
	Interval Duration       `json:"interval,omitempty"`
	Asking   bool           `json:"asking,omitempty"`   // a reading is in progress
	Last     time.Time      `json:"last,omitzero"`      // of the last reading
	Good     time.Time      `json:"good,omitzero"`      // of the last successful reading
	Nodes    int            `json:"nodes"`              // number in the last successful reading
	Counts   map[string]int `json:"counts,omitempty"`   // new, same, changed, conflict, missing, incomplete
	Problems []string       `json:"problems,omitempty"` // nodes that were not stored, each with the reason
	Error    string         `json:"error,omitempty"`    // of the last reading
	Stopped  bool           `json:"stopped,omitempty"`  // there is no automatic reading until an operator requests one
}

// PowerRequest is a request to switch machines: the named nodes, or all nodes that
// match Pool, Chassis and Tag.
type PowerRequest struct {
	Action  string   `json:"action"` // on, off, cycle, pxe, status
	Nodes   []string `json:"nodes,omitempty"`
	Pool    string   `json:"pool,omitempty"`
	Chassis string   `json:"chassis,omitempty"`
	Tag     string   `json:"tag,omitempty"`

	// Wait is the longest wait for a machine to be on, or off; default 2m.
	Wait Duration `json:"wait,omitempty"`
	// MaxParallel is the number of machines that are switched at a time; 0: all.
	MaxParallel int `json:"maxParallel,omitempty"`
	// Drain is the longest time for the pods of a machine to go before it is switched off:
	// its Node is cordoned, and they are evicted. A machine that is not drained then is not
	// switched. Default: it is switched at once.
	Drain Duration `json:"drain,omitempty"`
}

// PowerJob is a [PowerRequest] in progress or done.
type PowerJob struct {
	ID      string      `json:"id"`
	Action  string      `json:"action"`
	Actor   string      `json:"who"` // as in [AuditEntry]
	Started time.Time   `json:"started"`
	Ended   time.Time   `json:"ended,omitzero"` // zero: it is in progress
	Nodes   []PowerNode `json:"nodes"`
}

// PowerNode is the progress of a [PowerJob] for one machine.
type PowerNode struct {
	Name  string    `json:"name"`
	Step  string    `json:"step"`          // waiting, draining and what is left, asked, pxe once, off, pxe undone, on, done, failed
	State string    `json:"state"`         // as last read; unknown does not mean off
	Time  time.Time `json:"time,omitzero"` // of Step
	Error string    `json:"error,omitempty"`
}

// The first and the last steps of a [PowerNode]. A step between them is the last
// command that was sent.
const (
	PowerWaiting = "waiting"
	PowerDone    = "done"
	PowerFailed  = "failed"
)

// AuditChange is a field of what an [AuditEntry] is about, before and after. Empty: it was, or
// is, not set.
type AuditChange struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// MaxAudit is the number of entries of the audit that are kept. Switching a chassis makes one
// entry for each of its nodes.
const MaxAudit = 20_000

// AuditEntry is one action of a person or of drover.
type AuditEntry struct {
	Time   time.Time `json:"time"`
	Actor  string    `json:"who"`            // "token ci from 10.0.0.5:1234", "page from 10.0.0.5:1234", "socket alice from this host", "chassis m1"
	Action string    `json:"action"`         // "power pxe", "add node"
	Node   string    `json:"node,omitempty"` // empty: more than one
	Job    string    `json:"job,omitempty"`  // ID of a [PowerJob]
	Result string    `json:"result"`         // "begun", "done", a power state, or an error

	Changes []AuditChange `json:"changes,omitempty"` // of a node, or of the config
}

// The errors of requests about hardware. Test with errors.Is.
var (
	ErrPowerRequest = errors.New("power order refused")
	ErrNoChassis    = errors.New("no such chassis in the config")
)
