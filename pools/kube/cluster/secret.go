package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

// WatchSecret keeps the credentials equal to those in the Secret, which it reads
// from the admin cluster, until ctx is done.
//
// A Secret that is deleted takes the credentials away: that is how a tenant ends.
// A Secret that cannot be used, or that cannot be read while the admin cluster is
// down, leaves the earlier credentials in force.
func (c *Cluster) WatchSecret(ctx context.Context, admin *Cluster, log *slog.Logger) {
	ref := c.Conf.SecretRef
	secrets := func(client kubernetes.Interface) Source[*corev1.SecretList] {
		return client.CoreV1().Secrets(ref.Namespace)
	}
	Follow(ctx, admin.Client, secrets, "metadata.name="+ref.Name, Handler[*corev1.Secret]{
		Listed:  func(all []*corev1.Secret) { c.use(append(all, nil)[0], log) },
		Changed: func(s *corev1.Secret) { c.use(s, log) },
		Deleted: func(*corev1.Secret) { c.use(nil, log) },
		Tried: func(_ string, err error) {
			if err != nil && ctx.Err() == nil && c.unreadable(c.adminError(err)) {
				log.Warn("the Secret of a cluster cannot be read", "err", err)
			}
		},
	})
}

// adminError explains an error of the admin cluster.
func (c *Cluster) adminError(err error) error {
	ref := c.Conf.SecretRef
	if _, ok := errors.AsType[*Error](err); ok {
		return fmt.Errorf("server.adminKubeconfig: %w", err)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s: drover may not get, list and watch it; docs/clusters.md has the Role: %w", secretName(ref), err)
	}
	return fmt.Errorf("%s: %w", secretName(ref), err)
}

// use takes the credentials from a Secret; nil means that there is none.
func (c *Cluster) use(s *corev1.Secret, log *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.markKnown()
	ref := c.Conf.SecretRef
	if s == nil {
		if c.client != nil {
			log.Warn("the Secret of a cluster is gone: nodes cannot join it", "secret", ref.Namespace+"/"+ref.Name)
		}
		c.client, c.made = nil, nil
		c.problem = fmt.Errorf("there is no %s", secretName(ref))
		return
	}
	conf, err := kubeconfigIn(s, ref.Key, c.Conf.Endpoint)
	if err == nil && c.client != nil && reflect.DeepEqual(conf, c.made) {
		c.problem = nil
		return
	}
	if err == nil {
		client, failed := dial(*conf, c.now)
		if err = failed; err == nil {
			if c.client != nil {
				log.Info("new credentials of a cluster", "secret", ref.Namespace+"/"+ref.Name)
			}
			c.client, c.made, c.problem = client, conf, nil
			return
		}
		err = fmt.Errorf("its kubeconfig is of no use: %w", err)
	}
	c.problem = fmt.Errorf("%s: %w", secretName(ref), err)
	log.Warn("the Secret of a cluster is of no use", "err", c.problem, "earlier credentials in force", c.client != nil)
}

// unreadable notes that the Secret cannot be read, and reports whether that is
// news.
func (c *Cluster) unreadable(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.markKnown()
	news := c.problem == nil || c.problem.Error() != err.Error()
	c.problem = err
	return news
}

// AwaitSecret waits until the Secret was read for the first time, or could not be
// read. Without a Secret it returns at once.
func (c *Cluster) AwaitSecret(ctx context.Context) {
	if c.known == nil {
		return // a file is read when it is needed
	}
	select {
	case <-c.known:
	case <-ctx.Done():
	}
}
