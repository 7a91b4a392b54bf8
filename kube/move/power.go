package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drover/internal/wait"
	"drover/kube/node"
	"drover/pools"
)

const (
	endTimeout = 15 * time.Second // for the last change of a Node, when its drain ends
	endTries   = 5                // others write the Node, too
)

// Drain cordons a Node and evicts its pods, because its machine is to be switched off, for
// at most limit. progress gets what is left. A Node that is not there, or whose kubelet is
// silent, needs no drain. After an error the Node is as it was.
//
// The caller calls done at the end: a machine that was switched leaves its Node cordoned
// until the next boot, which makes another Node; else the Node is uncordoned. After a
// restart of drover in between, [Mover.Check] uncordons it.
func (o *Mover) Drain(ctx context.Context, name string, limit time.Duration, progress func(string)) (done func(switched bool), err error) {
	if !o.take(name) {
		return nil, errors.New("it is being drained already")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	left, err := o.empty(ctx, name, progress)
	if err == nil {
		return func(switched bool) { o.endDrain(ctx, name, switched) }, nil
	}
	o.endDrain(ctx, name, false)
	if errors.Is(context.Cause(ctx), errLimit) {
		return nil, fmt.Errorf("it is not drained after %s: %w", pools.Duration(limit), cmp.Or(left, err))
	}
	return nil, err
}

var errLimit = errors.New("the time limit is over")

// take notes that a Node is drained for its machine's power; false if it is noted already.
func (o *Mover) take(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.power[name] {
		return false
	}
	if o.power == nil {
		o.power = map[string]bool{}
	}
	o.power[name] = true
	return true
}

// empty evicts pods until none is left or ctx ends. Then left are those that were left last,
// if they are known.
func (o *Mover) empty(ctx context.Context, name string, progress func(string)) (left, err error) {
	for {
		pods, held, err := o.emptyOnce(ctx, name)
		_, final := errors.AsType[*pools.HintError](err)
		switch {
		case final || apierrors.IsForbidden(err):
			return nil, err
		case err != nil:
			progress(err.Error())
		case pods == 0:
			return nil, nil
		default:
			left = errors.New(remaining(pods, held))
			progress(left.Error())
		}
		if ended := wait.Sleep(ctx, cmp.Or(o.Interval, checkInterval)); ended != nil {
			return left, cmp.Or(err, ended)
		}
	}
}

// emptyOnce cordons a Node and evicts its pods. It returns the number of those that were
// there, and those that a budget holds.
func (o *Mover) emptyOnce(ctx context.Context, name string) (pods int, held []string, err error) {
	if err := o.room().Acquire(ctx, 1); err != nil {
		return 0, nil, fmt.Errorf("other nodes are being drained: %w", err)
	}
	defer o.room().Release(1)
	n, err := node.Get(ctx, o.Cluster, name)
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil, nil
	case err != nil:
		return 0, nil, err
	case !node.Owned(o.Key, n):
		return 0, nil, pools.Hint("kubectl drain "+name+", and switch it without a drain", "drover cannot prove that it made the Node")
	case isSilent(n):
		return 0, nil, nil
	}
	if !n.Spec.Unschedulable {
		cordoned, err := o.patch(ctx, n, true, o.mark(n))
		if err == nil && !cordoned {
			err = errors.New("another client changes the Node")
		}
		if err != nil {
			return 0, nil, err
		}
	}
	client := o.Client()
	all, err := o.podsOf(ctx, client, name)
	if err != nil {
		return 0, nil, o.Wrap("list the pods of the Node", err)
	}
	held, err = o.evictAll(ctx, client, all, o.Log.With("node", name, "cluster", o.Conf.Name))
	return len(all), held, err
}

// isSilent reports whether the kubelet of a Node has stopped to report: nothing would end
// its pods.
func isSilent(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return false
}

// endDrain ends what [Mover.Drain] began. The Node may have been written since.
func (o *Mover) endDrain(ctx context.Context, name string, switched bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.power, name)
	}()
	ended, err := false, error(nil)
	for try := 0; try < endTries && !ended && err == nil; try++ {
		ended, err = o.leave(ctx, name, switched)
	}
	if err != nil || !ended {
		o.Log.Warn("the Node stays cordoned after its drain", "node", name, "cluster", o.Conf.Name, "err", err, "remedy", "kubectl uncordon "+name)
	}
}

// leave takes drover's mark from a Node, and uncordons it if its machine runs on. It returns
// false if others wrote the Node at the same time.
func (o *Mover) leave(ctx context.Context, name string, switched bool) (bool, error) {
	n, err := node.Get(ctx, o.Cluster, name)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	case !o.cordoned(n) || o.Target(name) != nil: // it was cordoned before, or it moves
		return true, nil
	case switched:
		return o.patch(ctx, n, true, nil)
	}
	return o.patch(ctx, n, nil, nil)
}
