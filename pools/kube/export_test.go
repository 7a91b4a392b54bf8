package kube

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drover/pools"
)

// ParseInfo reads the data of a cluster-info, as [Clusters.Join] does.
func ParseInfo(data map[string]string) (endpoint string, hashes []string, err error) {
	info, err := parseInfo(data)
	if err != nil {
		return "", nil, err
	}
	return info.endpoint, info.hashes, nil
}

// Render returns the JoinConfiguration of a node, with a token that is always
// the same.
func Render(p *pools.Plan, addr netip.Addr) (string, error) {
	reg, err := register(p, addr)
	if err != nil {
		return "", err
	}
	return reg.render(token{"abcdef", "0123456789abcdef"}, &clusterInfo{endpoint: "10.0.0.1:6443", hashes: []string{"sha256:00"}}, "")
}

// PrintedToken returns a new token as all that may print it do, and its secret.
func PrintedToken() (printed, secret string) {
	tok, err := newToken()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%v %s %q %+v %#v %v", tok, tok, tok, tok, tok, &tok), tok.secret
}

// Followed returns how many nodes are on their way to Ready.
func (c *Clusters) Followed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.followed)
}

// Expecting tells whether the first look at a Lease is taken.
func (c *Clusters) Expecting(cluster, node string) bool {
	cl, err := c.cluster(cluster)
	if err != nil {
		return false
	}
	_, ok := cl.pulses.get(node)
	return ok
}

// Renewal is how long a Lease of that duration is watched.
func Renewal(duration time.Duration) time.Duration { return renewal(duration) }

// Changes returns the patch that gives a Node the labels and taints of a Plan.
func Changes(p *pools.Plan, n *corev1.Node, key []byte) (string, error) {
	reg, err := registerSettings(p)
	if err != nil {
		return "", err
	}
	patch, err := reg.changes(n, key, note{})
	return string(patch), err
}
