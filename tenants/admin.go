package tenants

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"drover/internal/wait"
	"drover/kube/client"
	"drover/kube/cluster"
	"drover/kube/election"
)

// clients are those of the admin cluster with one set of credentials.
type clients struct {
	conf  *rest.Config // that they are made from
	typed client.Interface
	dyn   dynamic.Interface
}

func (c *Controller) typed() client.Interface { return c.clients.Load().typed }

func (c *Controller) dyn() dynamic.Interface { return c.clients.Load().dyn }

// refresh makes the clients anew if the credentials have changed. After an error those of
// before stay in force.
func (c *Controller) refresh() error {
	given, err := c.Admin()
	if err != nil {
		return err
	}
	if now := c.clients.Load(); now != nil && now.conf == given {
		return nil
	}
	made, conf := &clients{conf: given}, rest.CopyConfig(given)
	c.limits.Limit(conf)
	if made.typed, err = client.New(conf); err != nil {
		return err
	}
	if made.dyn, err = dynamic.NewForConfig(conf); err != nil {
		return err
	}
	c.clients.Store(made)
	return nil
}

// connect makes the clients of the admin cluster. Its error is that of ctx.
func (c *Controller) connect(ctx context.Context) error {
	c.limits = cluster.NewAdmin("", c.now)
	for delay := quickRound; ; delay = min(2*delay, slowRound) {
		err := c.refresh()
		if err == nil {
			return nil
		}
		c.setProblem(fmt.Errorf("the admin cluster's kubeconfig cannot be used, so this server keeps no tenant: %w", err))
		if err := wait.Sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// Problem returns why this server neither keeps control planes nor waits for its turn, or nil.
// A farm without any has no problem.
func (c *Controller) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.tenants) == 0 {
		return nil
	}
	return c.problem
}

// setProblem keeps the error of the admin cluster's kubeconfig or of the Lease, and logs
// another one.
func (c *Controller) setProblem(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && (c.problem == nil || c.problem.Error() != err.Error()) {
		c.log().Warn("tenant control planes are not being reconciled", "err", err)
	}
	c.problem = err
}

// elector returns what makes one server the leader. Each request for its Lease is made with
// the credentials of that time, and its error is a problem of the controller.
func (c *Controller) elector() *election.Elector {
	var unread error // of a kubeconfig that cannot replace the current one
	return &election.Elector{
		Leases: func() election.Leases {
			unread = c.refresh()
			return c.typed().CoordinationV1().Leases(c.Namespace)
		},
		Name: leaseName, Identity: c.Identity,
		Duration: leaseDuration, Deadline: leaseRenew, Retry: leaseRetry,
		Lead: c.lead,
		Tried: func(ctx context.Context, err error) {
			switch {
			case ctx.Err() != nil:
			case err != nil:
				c.setProblem(fmt.Errorf("the Lease %s/%s of the leader cannot be read or renewed, so this server keeps no tenant: %w", c.Namespace, leaseName, err))
			case unread != nil:
				c.setProblem(fmt.Errorf("the admin cluster's kubeconfig cannot be used, and the one before stays in force: %w", unread))
			default:
				c.setProblem(nil)
			}
		},
	}
}
