package pools

import (
	"slices"
	"time"
)

// FallBackAfter is the number of boots of a generation that must fail, one after the other, before a
// node boots the one that it ran before.
const FallBackAfter = 2

// ImageTrial is what the boots of a node say about the generations of its image.
type ImageTrial struct {
	Image string `json:"image"` // its name
	Good  string `json:"good"`  // the ID of the last generation that was Ready on the node, or online without a cluster

	// Failed is a later generation whose boots have failed, Boots the IDs of these boots, the last
	// FallBackAfter at most. FellBack is when there were so many: until the trial is cleared the node
	// boots Good in place of Failed.
	Failed   string    `json:"failed,omitempty"`
	Boots    []string  `json:"boots,omitempty"`
	FellBack time.Time `json:"fellBack,omitzero"`
}

// IsZero reports whether nothing is known.
func (t ImageTrial) IsZero() bool { return t.Good == "" }

// Equal reports whether two trials say the same.
func (t ImageTrial) Equal(o ImageTrial) bool {
	return t.Image == o.Image && t.Good == o.Good && t.Failed == o.Failed && t.FellBack.Equal(o.FellBack) && slices.Equal(t.Boots, o.Boots)
}

// Cleared returns the trial without failures: the node boots what its pool says.
func (t ImageTrial) Cleared() ImageTrial { return ImageTrial{Image: t.Image, Good: t.Good} }
