package redfish

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"drover/hardware/bmc"
)

// maxTag bounds an entity tag, in bytes.
const maxTag = 256

// document is a resource with the entity tags of its answer.
type document struct {
	Tree
	path string
	tags []string // that of the header first; empty: the resource has none
}

// document reads the resource at a path.
func (s *Client) document(ctx context.Context, path string) (d document, err error) {
	d.path = path
	a, err := s.exchange(ctx, message{method: http.MethodGet, path: path})
	switch {
	case err != nil:
		return d, err
	case a.code >= 300:
		return d, s.status(a, http.MethodGet, path)
	}
	if err := decode(a.body, &d.Tree); err != nil {
		return d, fmt.Errorf("%w: %s: the answer to GET %s: %w", bmc.ErrUnreadable, s.Address, path, err)
	}
	for _, tag := range []string{a.header.Get("ETag"), d.Get("@odata.etag").raw()} {
		if tag != "" && len(tag) <= maxTag && !slices.Contains(d.tags, tag) && !strings.ContainsFunc(tag, func(r rune) bool { return r < ' ' || r > '~' }) {
			d.tags = append(d.tags, tag)
		}
	}
	return d, nil
}

// Requests until a service accepts an entity tag: with that which was read, with a newer one if another
// client has changed the resource, and in another form.
const tagTries = 3

// change sends a request that changes d, or that is an action of it, and returns the body of the
// answer. A PATCH has the entity tag of d, if there is one (DSP0266, 6.5). When the service refuses
// the tag, or demands one, change reads d anew and repeats the request.
func (s *Client) change(ctx context.Context, m message, d document) ([]byte, error) {
	if m.method == http.MethodPatch && len(d.tags) > 0 {
		m.ifMatch = d.tags[0]
	}
	for try := 1; ; try++ {
		a, err := s.exchange(ctx, m)
		switch {
		case err != nil:
			return nil, err
		case a.code < 300:
			return a.body, nil
		case try == tagTries || a.code != http.StatusPreconditionFailed && a.code != http.StatusPreconditionRequired:
			return a.body, s.status(a, m.method, m.path)
		}
		fresh, err := s.document(ctx, d.path)
		if err != nil {
			return nil, fmt.Errorf("%w; its entity tag could not be read: %w", s.status(a, m.method, m.path), err)
		}
		m.ifMatch = nextTag(fresh.tags, m.ifMatch)
	}
}

// nextTag returns the entity tag to try after a refused one. If the resource still has that, the
// service compares another form: that in the document, the strong one, or none at all.
func nextTag(fresh []string, refused string) string {
	for _, tag := range fresh {
		if tag != refused {
			return tag
		}
	}
	if strong, weak := strings.CutPrefix(refused, "W/"); weak {
		return strong
	}
	if refused == "" {
		return "*" // any version: it has no tag
	}
	return ""
}
