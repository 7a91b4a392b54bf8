package redfish

import (
	"context"
	"fmt"
	"strings"

	"drover/hardware/bmc"
)

// Bounds of a collection, whose links may form a circle or never end.
const (
	maxPages   = 64
	maxMembers = 1440 // a chassis has 360 slots
)

// Collection returns the links to all members of a collection.
func (s *Client) Collection(ctx context.Context, at string) ([]string, error) {
	var out []string
	visited := map[string]bool{}
	for page := 1; at != "" && !visited[at]; page++ {
		if page > maxPages {
			return nil, fmt.Errorf("%w: %s: a collection of more than %d pages", bmc.ErrUnreadable, s.Address, maxPages)
		}
		t, err := s.Get(ctx, at)
		if err != nil {
			return nil, err
		}
		visited[at] = true
		for _, link := range t.members() {
			key := strings.ToLower(link)
			if visited[key] {
				continue
			}
			if _, err := s.target(link); err != nil {
				return nil, err
			}
			visited[key] = true
			if out = append(out, link); len(out) > maxMembers {
				return nil, fmt.Errorf("%w: %s: a collection of more than %d members", bmc.ErrUnreadable, s.Address, maxMembers)
			}
		}
		at = t.next()
	}
	return out, nil
}
