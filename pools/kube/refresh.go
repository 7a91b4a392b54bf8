package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools/wait"
)

const (
	listPage    = 500 // Nodes in one answer
	tendAtOnce  = 8   // Nodes of one cluster
	maxTendWait = time.Minute
)

// Refresh gives all Nodes that carry drover's mark the labels and taints that
// their Plans say now, in the background: call it after each change of the farm.
// Each cluster is on its own, and tries again until it is done. What others have
// put on a Node stays. Nodes whose machines the farm has in another cluster now
// are seen out of theirs, see [Clusters.Moves]; those that it does not have at all
// are left alone.
func (c *Clusters) Refresh() {
	if c.PlanOf == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil || c.ctx.Err() != nil {
		return
	}
	for _, cl := range c.byName {
		if cl.tending.want() {
			c.running.Go(func() { c.tendUntilDone(c.ctx, cl) })
		}
	}
}

// errand is work that somebody does, and may be asked for anew meanwhile.
type errand struct {
	mu            sync.Mutex
	wanted, going bool
}

// want asks for the work. It returns true if the caller has to have it begun.
func (e *errand) want() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	begin := !e.going
	e.wanted, e.going = true, true
	return begin
}

// next tells whether there is work, and ends the errand when there is none.
func (e *errand) next() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	more := e.wanted
	e.wanted, e.going = false, more
	return more
}

func (c *Clusters) tendUntilDone(ctx context.Context, cl *cluster) {
	log := c.log().With("cluster", cl.conf.Name)
	for cl.tending.next() {
		for delay := time.Second; ; delay = min(2*delay, maxTendWait) {
			if now, err := c.cluster(cl.conf.Name); err != nil || now != cl {
				break // it is in the config no more
			}
			changed, err := c.tendAll(ctx, cl)
			if c.OnTend != nil && ctx.Err() == nil {
				c.OnTend(cl.conf.Name, changed, err)
			}
			if changed > 0 {
				log.Info("labels and taints follow the config", "nodes", changed)
			}
			if err == nil || ctx.Err() != nil {
				break
			}
			log.Warn("labels and taints do not follow the config yet", "err", err, "again", delay)
			if wait.Sleep(ctx, delay) != nil {
				break
			}
		}
	}
}

// tendAll tends each Node with the mark, and returns how many it changed. One
// that fails keeps no other from it.
func (c *Clusters) tendAll(ctx context.Context, cl *cluster) (changed int, err error) {
	cl.await(ctx)
	client, err := cl.connect()
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var errs []error
	var strays []string
	opts := metav1.ListOptions{LabelSelector: markLabel, Limit: listPage}
	for {
		page, err := listNodes(ctx, client, opts)
		if err != nil {
			return changed, errors.Join(append(errs, cl.errorf("list the Nodes", err))...)
		}
		var wg sync.WaitGroup
		slots := make(chan struct{}, tendAtOnce)
		for i := range page.Items {
			if name := page.Items[i].Name; c.PlanOf(name) == nil && c.target(cl, name) == nil {
				strays = append(strays, name)
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				did, err := c.tendOne(ctx, cl, &page.Items[i])
				mu.Lock()
				defer mu.Unlock()
				if did {
					changed++
				}
				if err != nil && len(errs) < 5 { // the rest says the same
					errs = append(errs, fmt.Errorf("node %q: %w", page.Items[i].Name, err))
				}
			})
		}
		wg.Wait()
		if page.Continue == "" {
			if len(strays) > 0 {
				c.log().Info("Nodes that drover made and that no config names stay in the cluster", "cluster", cl.conf.Name,
					"count", len(strays), "nodes", strays[:min(5, len(strays))])
			}
			return changed, errors.Join(errs...)
		}
		opts.Continue = page.Continue
	}
}

// tendOne tends a Node, if its Plan says that it belongs to the cluster.
func (c *Clusters) tendOne(ctx context.Context, cl *cluster, n *corev1.Node) (bool, error) {
	p := c.PlanOf(n.Name)
	c.seeOut(cl, n)
	if p == nil || p.Cluster != cl.conf.Name || p.Node != n.Name {
		return false, nil
	}
	reg, err := registerSettings(p)
	if err != nil {
		// It is for the operator to mend, and then the farm changes.
		c.log().Warn("labels and taints cannot be those of a Node", "node", n.Name, "cluster", cl.conf.Name, "err", err)
		return false, nil
	}
	return cl.tend(ctx, n, reg, c.sealKey(), note{})
}
