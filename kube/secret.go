package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
)

// Secret returns the value of a key of a Secret of the admin cluster, of at most limit
// bytes. Its errors do not quote values.
func (c *Clusters) Secret(ctx context.Context, ref pools.SecretRef, limit int) ([]byte, error) {
	c.mu.Lock()
	admin := c.admin
	c.mu.Unlock()
	name := "Secret " + ref.Namespace + "/" + ref.Name
	if admin == nil {
		return nil, fmt.Errorf("%s: there is no admin cluster yet", name)
	}
	s, err := admin.Client().CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, admin.Wrap("read "+name, err)
	}
	value, ok := s.Data[ref.Key]
	switch {
	case !ok:
		return nil, fmt.Errorf("%s has no key %q", name, ref.Key)
	case len(value) > limit:
		return nil, fmt.Errorf("%s: key %q has more than %d bytes", name, ref.Key, limit)
	}
	return value, nil
}
