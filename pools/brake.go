package pools

import (
	"strconv"
	"strings"
)

// Brake bounds what a change of the config file may do to nodes without a yes of an operator.
type Brake struct {
	// Nodes is how many nodes a change may remove, move to another cluster or give another
	// address; 0: any number. Default 5.
	Nodes *int `json:"nodes,omitempty"`
	// Share is the same as a share of all nodes; the larger of both counts. Default 2%.
	Share *Share `json:"share,omitempty"`
}

// Limit returns how many of a number of nodes a change may disrupt; false: all.
func (b Brake) Limit(nodes int) (limit int, on bool) {
	if b.Nodes == nil || *b.Nodes == 0 {
		return 0, false
	}
	limit = *b.Nodes
	if b.Share != nil {
		limit = max(limit, nodes*int(*b.Share)/shareOfAll)
	}
	return limit, true
}

// Share is a part of all, in hundredths of a percent. It is written as 2% or 0.5%.
type Share int

// shareOfAll is 100%.
const shareOfAll = 10_000

// String returns the form 0.5%.
func (s Share) String() string {
	return strconv.FormatFloat(float64(s)/100, 'f', -1, 64) + "%"
}

// MarshalText writes the form of [Share.String].
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a percentage from 0% to 100%, with up to two digits behind the point.
func (s *Share) UnmarshalText(b []byte) error {
	bad := Hint("write 2% or 0.5%", "%q is not a percentage from 0%% to 100%%", b)
	text, ok := strings.CutSuffix(string(b), "%")
	whole, part, _ := strings.Cut(text, ".")
	if !ok || len(whole) == 0 || len(whole) > 3 || len(part) > 2 || strings.HasSuffix(text, ".") || strings.Trim(whole+part, "0123456789") != "" {
		return bad
	}
	n, err := strconv.Atoi(whole + (part + "00")[:2])
	if err != nil || n > shareOfAll {
		return bad
	}
	*s = Share(n)
	return nil
}
