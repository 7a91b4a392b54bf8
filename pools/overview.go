package pools

import (
	"slices"
	"strings"
	"time"
)

// Overview is a farm at a moment, in an answer of the REST API.
type Overview struct {
	Ready    bool           `json:"ready"`
	Problems []PartProblem  `json:"problems"` // of the server: /readyz
	Nodes    map[string]int `json:"nodes"`    // by state
	Pools    []PoolStates   `json:"pools"`
	Stuck    []StuckCause   `json:"stuck"`
	Images   map[string]int `json:"images"`   // nodes by the image of their last boot
	Outdated int            `json:"outdated"` // nodes that have booted another generation than their pool boots now
	Leases   map[string]int `json:"leases"`   // by state
	Unknown  int            `json:"unknown"`
	Pin      string         `json:"pin,omitempty"` // of the key by which clients of the API know the server, for drover login --pin
}

// PartProblem is a part of the server that is not ready.
type PartProblem struct {
	Part    string `json:"part"` // its kind and name: "image debian-12"
	Problem string `json:"problem"`
	Warning bool   `json:"warning,omitempty"` // the server is ready all the same
}

// PoolStates is the nodes of a pool by their state.
type PoolStates struct {
	Name   string         `json:"name"`
	Nodes  int            `json:"nodes"`
	States map[string]int `json:"states"`
}

// StuckCause is why nodes are stuck.
type StuckCause struct {
	Cause string   `json:"cause"`
	Nodes []string `json:"nodes"`
}

// ImageInfo is a generation of an image in an answer of the REST API.
type ImageInfo struct {
	Name          string    `json:"name"`
	ID            string    `json:"id"`      // NAME@sha256:ID means this generation
	Current       bool      `json:"current"` // NAME alone, which is NAME:stable, means it, too
	Created       time.Time `json:"created"`
	Source        string    `json:"source"`
	Platform      string    `json:"platform"`
	KernelVersion string    `json:"kernelVersion"`
	Size          int64     `json:"size"`            // bytes of its files
	Pools         []string  `json:"pools,omitempty"` // whose machines get it in their next boot
	Nodes         int       `json:"nodes"`           // of those pools; machines of catch-all pools are not counted

	Channels []string   `json:"channels,omitempty"` // whose current generation it is
	Previous []string   `json:"previous,omitempty"` // of which a roll-back leads to it
	Bad      *ImageMark `json:"bad,omitempty"`      // nil: it is not marked bad
	Machines int        `json:"machines"`           // whose newest boot got it
}

// Means reports whether a reference to an image means the generation now.
func (i *ImageInfo) Means(ref string) bool {
	name, channel, id := SplitImage(ref)
	switch {
	case name != i.Name:
		return false
	case id != "":
		return strings.HasPrefix(i.ID, id)
	case channel == "" || channel == StableChannel:
		return i.Current
	}
	return slices.Contains(i.Channels, channel)
}

// ServerVersion is the version of a server.
type ServerVersion struct {
	Version string `json:"version"`
}

// RestoreRequest asks for the state of a backup that drover restore has laid ready in the state
// directory.
type RestoreRequest struct {
	SHA256 string `json:"sha256"` // of the backup, hexadecimal
}

// ConfigText is a config file to be checked.
type ConfigText struct {
	Content string `json:"content"`
}
