package kube

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"drover/pools/wait"
)

const (
	watchFor     = 5 * time.Minute  // how long one watch of a Secret lasts; then new credentials of the admin cluster are in force
	minWatchWait = time.Second      // between two watches
	maxWatchWait = 30 * time.Second // while it cannot be watched
)

// watchSecret keeps the credentials of a cluster those of its Secret, until ctx
// is done.
//
// A Secret that is deleted takes the credentials away: that is how a tenant ends.
// One that is of no use, or that cannot be seen while the admin cluster is down,
// leaves those that were there in force.
func (c *Clusters) watchSecret(ctx context.Context, cl *cluster, admin *cluster) {
	log := c.log().With("cluster", cl.conf.Name)
	for delay := minWatchWait; ctx.Err() == nil; _ = wait.Sleep(ctx, delay) {
		err := cl.followSecret(ctx, admin, log)
		switch {
		case err == nil:
			delay = minWatchWait
		case ctx.Err() == nil:
			delay = min(2*delay, maxWatchWait)
			if cl.unseen(err) {
				log.Warn("the Secret of a cluster is not seen", "err", err, "again", delay)
			}
		}
	}
}

// followSecret reads the Secret and follows it until the watch ends.
func (c *cluster) followSecret(ctx context.Context, admin *cluster, log *slog.Logger) error {
	client, err := admin.connect()
	if err != nil {
		return fmt.Errorf("server.adminKubeconfig: %w", err)
	}
	ref := c.conf.SecretRef
	secrets := client.CoreV1().Secrets(ref.Namespace)
	seconds := int64(watchFor.Seconds())
	opts := metav1.ListOptions{FieldSelector: "metadata.name=" + ref.Name}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	list, err := secrets.List(call, opts)
	cancel()
	if err != nil {
		return c.adminError(err)
	}
	var now *corev1.Secret
	if len(list.Items) > 0 {
		now = &list.Items[0]
	}
	c.take(now, log)
	opts.ResourceVersion, opts.TimeoutSeconds = list.ResourceVersion, &seconds
	w, err := secrets.Watch(ctx, opts)
	if err != nil {
		return c.adminError(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		s, ok := event.Object.(*corev1.Secret)
		switch {
		case !ok:
			return nil // too old: it is read anew
		case event.Type == watch.Deleted:
			c.take(nil, log)
		default:
			c.take(s, log)
		}
	}
	return nil
}

// adminError says what a refusal of the admin cluster means.
func (c *cluster) adminError(err error) error {
	ref := c.conf.SecretRef
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: drover may not get, list and watch it; docs/clusters.md has the Role: %w", secretName(ref), err)
	}
	return fmt.Errorf("%s: %w", secretName(ref), err)
}

// take makes the credentials those of a Secret; nil is that there is none.
func (c *cluster) take(s *corev1.Secret, log *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.seen()
	ref := c.conf.SecretRef
	if s == nil {
		if c.client != nil {
			log.Warn("the Secret of a cluster is gone: nodes cannot join it", "secret", ref.Namespace+"/"+ref.Name)
		}
		c.client, c.made = nil, nil
		c.trouble = fmt.Errorf("there is no %s", secretName(ref))
		return
	}
	conf, err := kubeconfigIn(s, ref.Key, c.conf.Endpoint)
	if err == nil && c.client != nil && reflect.DeepEqual(conf, c.made) {
		c.trouble = nil
		return
	}
	if err == nil {
		client, failed := dial(*conf, c.now)
		if err = failed; err == nil {
			if c.client != nil {
				log.Info("new credentials of a cluster", "secret", ref.Namespace+"/"+ref.Name)
			}
			c.client, c.made, c.trouble = client, conf, nil
			return
		}
		err = fmt.Errorf("its kubeconfig is of no use: %w", err)
	}
	c.trouble = fmt.Errorf("%s: %w", secretName(ref), err)
	log.Warn("the Secret of a cluster is of no use", "err", c.trouble, "earlier credentials in force", c.client != nil)
}

// unseen notes that the Secret cannot be seen, and tells whether that is news.
func (c *cluster) unseen(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.seen()
	news := c.trouble == nil || c.trouble.Error() != err.Error()
	c.trouble = err
	return news
}

// await waits until it is known for the first time what the Secret holds, or
// that it cannot be read.
func (c *cluster) await(ctx context.Context) {
	if c.known == nil {
		return // a file is read when it is needed
	}
	select {
	case <-c.known:
	case <-ctx.Done():
	}
}

// awaitJoin is await for a node that asks for its join when drover has just been
// started.
func (c *cluster) awaitJoin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c.await(ctx)
}
