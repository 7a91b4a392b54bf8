package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	pageSize    = 100              // objects
	pageLimit   = 500              // pages
	maxContinue = 4 << 10          // bytes; API servers use about 200
	listTimeout = 10 * time.Minute // of all pages
)

// listing is a list that is read in pages. Its pages are read one after another.
type listing struct {
	left  int // memory that the next page may take
	pages int // that were read
}

// listingKey is the key of a [*listing] in the context of a request.
type listingKey struct{}

// page reads the next page of a list. The error is a [*RefusedError] if the list exceeds
// a limit.
func page[L runtime.Object](ctx context.Context, c *Cluster, source Source[L], opts metav1.ListOptions, all *listing) (L, error) {
	var none L
	if all.pages++; all.pages > pageLimit {
		return none, c.refuse("list", fmt.Errorf("it has more than %d pages", pageLimit))
	}
	list, err := source.List(context.WithValue(ctx, listingKey{}, all), opts)
	if err != nil {
		return none, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return none, err
	}
	if n := len(m.GetContinue()); n > maxContinue {
		return none, c.refuse("list", fmt.Errorf("its continue token has %d bytes", n))
	}
	return list, nil
}

// EachPage calls f for each page of a list. Only one page is in memory at a time. The
// list ends with an error if it exceeds the limits of answers.
func EachPage[T, L runtime.Object](ctx context.Context, c *Cluster, source Source[L], opts metav1.ListOptions, f func([]T)) error {
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	opts.Limit = pageSize
	left := maxPages
	for all := new(listing); ; {
		all.left = min(left, maxPage)
		list, err := page(limited, c, source, opts, all)
		if err != nil {
			return err
		}
		var items []T
		if err := meta.EachListItem(list, func(o runtime.Object) error { items = append(items, o.(T)); return nil }); err != nil {
			return err
		}
		left -= min(left, maxPage) - all.left
		f(items)
		m, err := meta.ListAccessor(list)
		if err != nil || m.GetContinue() == "" {
			return err
		}
		opts.Continue = m.GetContinue()
	}
}
