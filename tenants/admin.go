package tenants

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"drover/internal/wait"
	"drover/kube/cluster"
)

// clients are those of the admin cluster with one set of credentials.
type clients struct {
	conf  *rest.Config // that they are made from
	typed kubernetes.Interface
	dyn   dynamic.Interface
}

func (c *Controller) typed() kubernetes.Interface { return c.clients.Load().typed }

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
	if made.typed, err = kubernetes.NewForConfig(conf); err != nil {
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

// lock is the Lease of the leader. Each request for it is made with the credentials of that
// time, and its error is a problem of the controller.
type lock struct {
	*resourcelock.LeaseLock
	c      *Controller
	unread error // of a kubeconfig that cannot replace the one in force
}

func (c *Controller) lock() *lock {
	l := &lock{c: c}
	l.LeaseLock = &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: leaseName}, Client: l,
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity},
	}
	return l
}

// Leases implements [coordination.LeasesGetter].
func (l *lock) Leases(namespace string) coordination.LeaseInterface {
	l.unread = l.c.refresh()
	return l.c.typed().CoordinationV1().Leases(namespace)
}

// Get reads the Lease.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	l.report(ctx, err)
	return record, raw, err
}

// Update renews the Lease.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Update(ctx, record)
	if err == nil {
		l.report(ctx, nil)
	}
	return err // Get is next
}

// report keeps the error of a request, or that of a kubeconfig which cannot replace the one
// in force.
func (l *lock) report(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !apierrors.IsNotFound(err):
		l.c.setProblem(fmt.Errorf("the Lease %s of the leader cannot be read, so this server keeps no tenant: %w", l.Describe(), err))
	case l.unread != nil:
		l.c.setProblem(fmt.Errorf("the admin cluster's kubeconfig cannot be used, and the one before stays in force: %w", l.unread))
	default:
		l.c.setProblem(nil)
	}
}
