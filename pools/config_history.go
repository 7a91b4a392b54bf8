package pools

import (
	"errors"
	"fmt"
	"time"
)

// ConfigWay is the way by which a content of the config file became active.
type ConfigWay string

// The ways of a config.
const (
	ConfigAtStart   ConfigWay = "start"    // the server read it when it started
	ConfigByFile    ConfigWay = "file"     // the file has changed
	ConfigBySignal  ConfigWay = "signal"   // SIGHUP
	ConfigByRequest ConfigWay = "request"  // drover reload, or the page
	ConfigRollback  ConfigWay = "rollback" // drover config rollback
)

// ConfigEntry is a content of the config file that was active, without its text.
type ConfigEntry struct {
	Number   int        `json:"number"`
	Time     time.Time  `json:"time"` // when it became active
	Who      string     `json:"who"`  // "config file", "token ci from 10.0.0.5:1234"
	Way      ConfigWay  `json:"way"`
	SHA256   string     `json:"sha256"`             // as [ConfigInForce] has it
	Bytes    int        `json:"bytes"`              // of all of its files
	Nodes    int        `json:"nodes"`              // of the farm, with those of the API
	Size     ChangeSize `json:"size"`               // what it did to nodes when it became active
	Rollback int        `json:"rollback,omitempty"` // the entry whose text it has again
}

// ConfigVersion is a content of the config file that was active, with its text. It may have secrets.
type ConfigVersion struct {
	ConfigEntry
	Content  string       `json:"content"`
	Included []ConfigPart `json:"included,omitempty"`
}

// MaxConfigs is the number of contents of the config file that are kept.
const MaxConfigs = 50

// HeldWhy is the reason why a content of the config file is not active, though it has no mistake.
type HeldWhy string

// The reasons for which a content is held.
const (
	HeldByBrake    HeldWhy = "brake"    // it disrupts more nodes than server.brake lets through
	HeldDropped    HeldWhy = "dropped"  // it did so, and an operator has said no
	HeldByRollback HeldWhy = "rollback" // an older content is active until the file agrees
)

// HeldConfig is a content of the config file that is not active, though it has no mistake.
type HeldConfig struct {
	SHA256   string     `json:"sha256"`
	Why      HeldWhy    `json:"why"`
	Since    time.Time  `json:"since"`
	Size     ChangeSize `json:"size"`               // what it would do to nodes
	Limit    int        `json:"limit,omitempty"`    // nodes that the brake lets through
	Rollback int        `json:"rollback,omitempty"` // the entry of the history that is active, if that is known
}

// Text says what is held, and what to do about it. It has no names of nodes.
func (h *HeldConfig) Text() string {
	const yes = "drover reload --yes makes it active"
	switch h.Why {
	case HeldByBrake:
		return fmt.Sprintf("a change of the file waits (%s): server.brake lets %d nodes through, and it disrupts %d of %d; %s, drover reload --no drops it",
			h.Size.Counts(), h.Limit, h.Size.Disrupted, h.Size.Before, yes)
	case HeldDropped:
		return fmt.Sprintf("file and farm differ: the change of the file was dropped (%s); undo it in the file, or %s", h.Size.Counts(), yes)
	default:
		from := "a rollback is active"
		if h.Rollback > 0 {
			from = fmt.Sprintf("a rollback to %d is active", h.Rollback)
		}
		return fmt.Sprintf("file and farm differ: %s (the file: %s); undo the change in the file, or %s", from, h.Size.Counts(), yes)
	}
}

// ConfigAnswer is what an operator says about the content of the config file that is held.
type ConfigAnswer struct {
	SHA256 string `json:"sha256"` // of that content; another one is not meant
	Drop   bool   `json:"drop,omitempty"`
}

// ErrNotHeld is the error of an answer to a change that does not wait.
var ErrNotHeld = errors.New("no change of the config file with that SHA-256 waits")

// ErrNoConfig is the error of a number that no config of the history has.
var ErrNoConfig = errors.New("the history has no config of that number")
