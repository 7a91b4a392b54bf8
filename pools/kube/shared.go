package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"drover/pools"
	"drover/pools/wait"
)

// TokenStore keeps shared tokens while the server is not running. What it is
// given holds secrets.
type TokenStore interface {
	// LoadTokens returns what was saved last, or nothing.
	LoadTokens() ([]byte, error)
	// SaveTokens keeps it, on disk when it returns.
	SaveTokens(data []byte) error
}

const (
	sharedKept  = 2 // tokens that are valid at a time: who got the one before may still use it
	sharedAgain = 15 * time.Second
	sharedFresh = time.Minute // after its minting a token may not be signed yet
)

// sharedToken is a bootstrap token that all nodes of a cluster may use.
type sharedToken struct {
	ID      string    `json:"id"`
	Secret  string    `json:"secret"`
	Minted  time.Time `json:"minted"`
	Expires time.Time `json:"expires"`
	Pending bool      `json:"pending,omitempty"` // not known to be in the cluster yet
}

func (t sharedToken) token() token { return token{t.ID, t.Secret} }

func (t sharedToken) String() string   { return t.token().String() }
func (t sharedToken) GoString() string { return t.String() }

// sharedCluster is what a cluster does for its shared tokens; *[cluster] does.
type sharedCluster interface {
	// put makes the token. One of that id that is there already is no error.
	put(ctx context.Context, tok token, g grant, what string) error
	// signed tells whether cluster-info is signed for it, which is as long as
	// the cluster holds it.
	signed(ctx context.Context, tok token) (bool, error)
	unmint(ctx context.Context, tok token) error
}

// rotation keeps the shared tokens of a cluster: the newest is handed out, the
// one before is valid too, older ones are removed.
type rotation struct {
	cluster sharedCluster
	ttl     time.Duration
	every   time.Duration
	now     func() time.Time
	log     *slog.Logger
	save    func([]sharedToken) error

	mu     sync.Mutex
	tokens []sharedToken // the newest first
}

// turn does what is due, and returns when the next thing is.
func (r *rotation) turn(ctx context.Context) (next time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if err := r.confirm(ctx); err != nil {
		return now.Add(sharedAgain), err
	}
	if len(r.tokens) == 0 || !now.Before(r.tokens[0].Minted.Add(r.every)) {
		if err := r.mint(ctx, now); err != nil {
			return now.Add(sharedAgain), err
		}
	}
	next = r.tokens[0].Minted.Add(r.every)
	if err := r.trim(ctx); err != nil {
		next = now.Add(sharedAgain)
		r.log.Warn("an old shared token is still in the cluster", "err", err, "again", sharedAgain)
	}
	return next, nil
}

// confirm finishes a token that was begun before the server ended, and drops
// the newest when somebody has deleted it in the cluster.
func (r *rotation) confirm(ctx context.Context) error {
	if len(r.tokens) == 0 || !r.tokens[0].Expires.After(r.now()) {
		return nil
	}
	t := &r.tokens[0]
	if t.Pending {
		return r.finish(ctx, t)
	}
	if r.now().Sub(t.Minted) < sharedFresh {
		return nil
	}
	there, err := r.cluster.signed(ctx, t.token())
	if err != nil {
		return err
	}
	if !there {
		r.log.Warn("the shared token is not in the cluster any more, or not signed, so another is made", "token", t.ID)
		if err := r.cluster.unmint(ctx, t.token()); err != nil {
			return err
		}
		r.tokens = r.tokens[1:]
	}
	return nil
}

// mint makes a token. It is saved before the cluster has it: a server that ends
// in between forgets none.
func (r *rotation) mint(ctx context.Context, now time.Time) error {
	tok, err := newToken()
	if err != nil {
		return err
	}
	t := sharedToken{ID: tok.id, Secret: tok.secret, Minted: now, Expires: now.Add(r.ttl).Truncate(time.Second), Pending: true}
	r.tokens = append([]sharedToken{t}, r.tokens...)
	if err := r.save(r.tokens); err != nil {
		r.tokens = r.tokens[1:]
		return fmt.Errorf("keep the shared tokens: %w", err)
	}
	return r.finish(ctx, &r.tokens[0])
}

func (r *rotation) finish(ctx context.Context, t *sharedToken) error {
	if err := r.cluster.put(ctx, t.token(), grant{expires: t.Expires}, "shared by all nodes"); err != nil {
		return err
	}
	t.Pending = false
	if err := r.save(r.tokens); err != nil {
		return fmt.Errorf("keep the shared tokens: %w", err)
	}
	r.log.Info("shared join token minted", "token", t.ID, "expires", t.Expires)
	return nil
}

// trim removes the tokens that are too many or expired, the oldest first. The
// cluster's tokencleaner would remove the latter too, where it runs.
func (r *rotation) trim(ctx context.Context) error {
	before := len(r.tokens)
	for len(r.tokens) > 0 {
		oldest := r.tokens[len(r.tokens)-1]
		if len(r.tokens) <= sharedKept && oldest.Expires.After(r.now()) {
			break
		}
		if err := r.cluster.unmint(ctx, oldest.token()); err != nil {
			return err
		}
		r.log.Info("shared join token removed", "token", oldest.ID)
		r.tokens = r.tokens[:len(r.tokens)-1]
	}
	if len(r.tokens) == before {
		return nil
	}
	return r.save(r.tokens)
}

// newest returns the token to hand out.
func (r *rotation) newest() (sharedToken, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tokens {
		if !t.Pending && t.Expires.After(r.now()) {
			return t, true
		}
	}
	return sharedToken{}, false
}

// run turns until ctx is done.
func (r *rotation) run(ctx context.Context) {
	for {
		next, err := r.turn(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("the shared join token is not rotated", "err", err, "again", next.Sub(r.now()))
		}
		if wait.Sleep(ctx, next.Sub(r.now())) != nil {
			return
		}
	}
}

// current returns the token to hand out, and makes one if there is none.
func (r *rotation) current(ctx context.Context) (sharedToken, error) {
	if t, ok := r.newest(); ok {
		return t, nil
	}
	if _, err := r.turn(ctx); err != nil {
		return sharedToken{}, err
	}
	if t, ok := r.newest(); ok {
		return t, nil
	}
	return sharedToken{}, errors.New("there is no shared token")
}

// rotation returns that of a cluster with shared tokens, as it was left when the
// server ended.
func (c *Clusters) rotation(cl *cluster) (*rotation, error) {
	c.sharedMu.Lock()
	defer c.sharedMu.Unlock()
	if cl.shared != nil {
		return cl.shared, nil
	}
	if err := c.loadShared(); err != nil {
		return nil, err
	}
	name := cl.conf.Name
	cl.shared = &rotation{
		cluster: keyed{cl, c.sealKey}, ttl: cl.ttl(), every: cl.rotate(), now: c.now, log: c.log().With("cluster", name),
		tokens: slices.Clone(c.sharedTokens[name]),
		save:   func(tokens []sharedToken) error { return c.saveShared(name, tokens) },
	}
	return cl.shared, nil
}

// keyed is a cluster and what grants are sealed with there.
type keyed struct {
	*cluster
	key func() []byte
}

func (k keyed) put(ctx context.Context, tok token, g grant, what string) error {
	return k.cluster.put(ctx, k.key(), tok, g, what)
}

func (k keyed) signed(ctx context.Context, tok token) (bool, error) {
	info, err := k.info(ctx)
	return err == nil && info.signedFor(tok), err
}

// rotate keeps the shared tokens of a cluster until ctx is done.
func (c *Clusters) rotate(ctx context.Context, cl *cluster) {
	for {
		r, err := c.rotation(cl)
		if err == nil {
			r.run(ctx)
			return
		}
		c.log().Error("shared join tokens are not rotated", "cluster", cl.conf.Name, "err", err)
		if wait.Sleep(ctx, time.Minute) != nil {
			return
		}
	}
}

// loadShared reads the tokens of all clusters, once. c.sharedMu is held.
func (c *Clusters) loadShared() error {
	if c.sharedTokens != nil {
		return nil
	}
	tokens := make(map[string][]sharedToken)
	if c.Tokens != nil {
		data, err := c.Tokens.LoadTokens()
		if err != nil {
			return fmt.Errorf("shared tokens: %w", err)
		}
		if len(data) > 0 && json.Unmarshal(data, &tokens) != nil { // its error may quote a secret
			return errors.New("shared tokens: what was kept of them is not JSON of drover's; remove it, and they are made anew")
		}
	}
	c.sharedTokens = tokens
	return nil
}

// saveShared keeps the tokens of a cluster beside those of the others.
func (c *Clusters) saveShared(cluster string, tokens []sharedToken) error {
	c.sharedMu.Lock()
	defer c.sharedMu.Unlock()
	c.sharedTokens[cluster] = slices.Clone(tokens)
	if c.Tokens == nil {
		return nil
	}
	now := c.now()
	for name, list := range c.sharedTokens { // of clusters that are not in the config any more
		if !slices.ContainsFunc(list, func(t sharedToken) bool { return t.Expires.After(now) }) {
			delete(c.sharedTokens, name)
		}
	}
	data, err := json.Marshal(c.sharedTokens)
	if err != nil {
		return err
	}
	return c.Tokens.SaveTokens(data)
}

// rotate is how often a shared token is replaced.
func (c *cluster) rotate() time.Duration {
	if d := time.Duration(c.conf.Token.Rotate); d > 0 {
		return d
	}
	return c.ttl() / 2
}

// SharedToken returns the join token that all nodes of a cluster share now, for
// machines that cannot ask for theirs.
func (c *Clusters) SharedToken(ctx context.Context, name string) (pools.JoinToken, error) {
	cl, err := c.cluster(name)
	if err != nil {
		return pools.JoinToken{}, fmt.Errorf("%w: %w", pools.ErrNoCluster, err)
	}
	if cl.conf.Token.Mode != pools.Shared {
		return pools.JoinToken{}, fmt.Errorf("cluster %q: %w", name, pools.ErrNotShared)
	}
	ctx, cancel := context.WithTimeout(quiet(ctx), joinTimeout)
	defer cancel()
	t, info, err := c.sharedJoin(ctx, cl)
	if err != nil {
		return pools.JoinToken{}, err
	}
	endpoint := cl.conf.Endpoint
	if endpoint == "" {
		endpoint = info.endpoint
	}
	return pools.JoinToken{Cluster: name, Token: t.token().full(), Expires: t.Expires, Endpoint: endpoint, CACertHashes: info.hashes}, nil
}

// sharedJoin returns the shared token of a cluster once nodes can use it.
func (c *Clusters) sharedJoin(ctx context.Context, cl *cluster) (sharedToken, *clusterInfo, error) {
	r, err := c.rotation(cl)
	if err != nil {
		return sharedToken{}, nil, err
	}
	client, err := cl.connect()
	if err != nil {
		return sharedToken{}, nil, err
	}
	t, err := r.current(ctx)
	if err != nil {
		return sharedToken{}, nil, err
	}
	info, err := cl.awaitSigned(ctx, t.token(), client)
	return t, info, err
}
