package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drover/kube/client"
)

// WatchSecret watches the Secret in the admin cluster, and keeps the credentials equal
// to it, until ctx is done.
//
// When the Secret is deleted, the credentials are dropped: the tenant has ended. When
// the Secret cannot be used, or cannot be read because the admin cluster is down, the
// earlier credentials stay in force.
func (c *Cluster) WatchSecret(ctx context.Context, admin *Cluster, log *slog.Logger) {
	ref := c.Conf.SecretRef
	secrets := func(client client.Interface) Source[*corev1.SecretList] {
		return client.CoreV1().Secrets(ref.Namespace)
	}
	Follow(ctx, admin, secrets, "metadata.name="+ref.Name, Handler[*corev1.Secret]{
		Listed:  func(all []*corev1.Secret) { c.use(append(all, nil)[0], log) },
		Changed: func(s *corev1.Secret) { c.use(s, log) },
		Deleted: func(*corev1.Secret) { c.use(nil, log) },
		Tried: func(_ string, err error) {
			if err != nil && ctx.Err() == nil && c.setUnreadable(c.adminError(err)) {
				log.Warn("cannot read cluster Secret", "err", err)
			}
		},
	})
}

// adminError adds the Secret, and a remedy, to an error of the admin cluster.
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

// use takes the credentials from a Secret; nil means that the Secret does not exist.
func (c *Cluster) use(s *corev1.Secret, log *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.markSecretRead()
	ref := c.Conf.SecretRef
	if s == nil {
		if c.client != nil {
			log.Warn("cluster Secret is gone: nodes cannot join the cluster", "secret", ref.Namespace+"/"+ref.Name)
		}
		c.client, c.source = nil, nil
		c.problem = fmt.Errorf("there is no %s", secretName(ref))
		return
	}
	conf, err := kubeconfigIn(s, ref.Key, c.Conf.Endpoint)
	if err == nil && c.client != nil && reflect.DeepEqual(conf, c.source) {
		c.problem = nil
		return
	}
	if err == nil {
		client, failed := c.dial(*conf)
		if err = failed; err == nil {
			if c.client != nil {
				log.Info("new credentials of a cluster", "secret", ref.Namespace+"/"+ref.Name)
			}
			c.client, c.source, c.problem = client, conf, nil
			return
		}
		err = fmt.Errorf("its kubeconfig cannot be used: %w", err)
	}
	c.problem = fmt.Errorf("%s: %w", secretName(ref), err)
	log.Warn("cluster Secret has no usable kubeconfig", "err", c.problem, "earlier credentials in force", c.client != nil)
}

// setUnreadable records that the Secret cannot be read, and reports whether the error
// is a new one.
func (c *Cluster) setUnreadable(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.markSecretRead()
	news := c.problem == nil || c.problem.Error() != err.Error()
	c.problem = err
	return news
}

// AwaitSecret waits for the first attempt to read the Secret. Without a Secret it
// returns at once.
func (c *Cluster) AwaitSecret(ctx context.Context) {
	if c.secretRead == nil {
		return // a file is read when it is needed
	}
	select {
	case <-c.secretRead:
	case <-ctx.Done():
	}
}
