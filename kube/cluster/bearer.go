package cluster

import (
	"fmt"

	"k8s.io/client-go/rest"

	"drover/kube/client"
)

// Bearer is the token in a kubeconfig, and the one that is used in its place. The zero value
// is that of other kinds of credentials, and of tokens in files that something else renews.
type Bearer struct {
	Given string // in the kubeconfig
	Used  string // Given, or what [Cluster.Renewed] has returned for it
}

// BearerOf returns the token of a client of [Cluster.Client].
func BearerOf(of client.Interface) Bearer {
	if c, ok := of.(*connection); ok {
		return c.bearer
	}
	return Bearer{}
}

// WithToken returns a client like one of [Cluster.Client], but with another token.
func WithToken(of client.Interface, token string) (client.Interface, error) {
	c, ok := of.(*connection)
	if !ok || c.conf == nil {
		return nil, fmt.Errorf("no credentials in a %T", of)
	}
	conf := rest.CopyConfig(c.conf)
	conf.BearerToken = token
	return client.New(conf)
}

// bear replaces the token of conf by a renewed one.
func (c *Cluster) bear(conf *rest.Config) (b Bearer) {
	other := conf.BearerTokenFile != "" || conf.ExecProvider != nil || conf.AuthProvider != nil || conf.Username != "" ||
		len(conf.CertData) > 0 || conf.CertFile != "" || conf.Impersonate.UserName != ""
	if conf.BearerToken == "" || other {
		return Bearer{}
	}
	b = Bearer{conf.BearerToken, conf.BearerToken}
	if c.Renewed == nil {
		return b
	}
	if newer := c.Renewed(b.Given); newer != "" {
		b.Used, conf.BearerToken = newer, newer
	}
	return b
}

// Redial makes the client anew from the newest usable kubeconfig, because [Cluster.Renewed]
// returns another token. Requests under way end with the one before.
func (c *Cluster) Redial() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stamp = "" // a file is read again when it is needed
	if c.source == nil {
		return
	}
	if client, err := c.dial(*c.source); err == nil { // it was usable before
		c.client = client
	}
}
