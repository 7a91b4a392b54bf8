package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
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

// Judge tells what the approver thinks of a request by itself.
func Judge(csr *certificatesv1.CertificateSigningRequest, key []byte, now time.Time) (verdict, why string) {
	r := judge(csr, key, now)
	return string(r.verdict), r.why
}

// Groups returns the groups of a token, as its Secret has them.
func Groups(key []byte, id, node string, expires time.Time) string {
	return grant{node, expires}.groups(key, id)
}

// SharedToken is one of those that a [Rotation] keeps.
type SharedToken = sharedToken

// Rotation keeps shared tokens in a cluster that a test makes.
type Rotation struct{ r *rotation }

// SharedCluster is what a [Rotation] asks of a cluster.
type SharedCluster interface {
	Put(id string) error
	Signed(id string) (bool, error)
	Unmint(id string) error
}

type sharedTest struct{ SharedCluster }

func (s sharedTest) put(_ context.Context, t token, _ grant, _ string) error { return s.Put(t.id) }
func (s sharedTest) signed(_ context.Context, t token) (bool, error)         { return s.Signed(t.id) }
func (s sharedTest) unmint(_ context.Context, t token) error                 { return s.Unmint(t.id) }

// NewRotation begins with the tokens that were saved before.
func NewRotation(c SharedCluster, ttl, every time.Duration, before []SharedToken, save func([]SharedToken) error) *Rotation {
	return &Rotation{&rotation{
		cluster: sharedTest{c}, ttl: ttl, every: every, now: time.Now, log: slog.New(slog.DiscardHandler), tokens: before, save: save,
	}}
}

// Run turns until ctx is done.
func (r *Rotation) Run(ctx context.Context) { r.r.run(ctx) }

// Newest returns the token to hand out.
func (r *Rotation) Newest() (SharedToken, bool) { return r.r.newest() }

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
