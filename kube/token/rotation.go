package token

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"drover/internal/wait"
	"drover/kube/cluster"
)

// Store stores shared tokens across restarts of the server. The data contains secrets.
type Store interface {
	// LoadTokens returns the data that was saved last, or nil.
	LoadTokens() ([]byte, error)
	// SaveTokens replaces the data, durably.
	SaveTokens(data []byte) error
}

const (
	maxShared  = 2                // valid tokens at a time: nodes may still use the previous one
	retryDelay = 15 * time.Second // after an error
	signTime   = time.Minute      // a younger token may not be signed yet
)

// Shared is a bootstrap token that all nodes of a cluster may use.
type Shared struct {
	Token
	Minted  time.Time `json:"minted"`
	Expires time.Time `json:"expires"`
	Pending bool      `json:"pending,omitempty"` // it may not be in the cluster yet
}

// Saved is the shared tokens of all clusters, in a Store.
type Saved struct {
	Store Store // nil: tokens are lost when the server ends
	Now   func() time.Time

	mu     sync.Mutex
	tokens map[string][]Shared // by cluster; nil until they are loaded
}

// load returns the tokens of a cluster.
func (s *Saved) load(name string) ([]Shared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens == nil {
		tokens := make(map[string][]Shared)
		if s.Store != nil {
			data, err := s.Store.LoadTokens()
			if err != nil {
				return nil, fmt.Errorf("shared tokens: %w", err)
			}
			if len(data) > 0 && json.Unmarshal(data, &tokens) != nil { // its error may quote a secret
				return nil, errors.New("shared tokens: the saved file is not JSON of drover's; remove it, and drover mints new tokens")
			}
		}
		s.tokens = tokens
	}
	return slices.Clone(s.tokens[name]), nil
}

// save replaces the tokens of one cluster. It drops clusters whose tokens have expired.
func (s *Saved) save(name string, tokens []Shared) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[name] = slices.Clone(tokens)
	if s.Store == nil {
		return nil
	}
	now := s.Now()
	for name, list := range s.tokens { // clusters that are no longer in the config
		if !slices.ContainsFunc(list, func(t Shared) bool { return t.Expires.After(now) }) {
			delete(s.tokens, name)
		}
	}
	data, err := json.Marshal(s.tokens)
	if err != nil {
		return err
	}
	return s.Store.SaveTokens(data)
}

// minter is the part of a [Minter] that a rotation uses.
type minter interface {
	put(ctx context.Context, tok Token, expires time.Time) error
	signed(ctx context.Context, tok Token) (bool, error)
	Delete(ctx context.Context, tok Token) error
}

// Rotation rotates the shared tokens of a cluster. Nodes get the newest, the previous
// one stays valid, and older ones are deleted.
type Rotation struct {
	minter minter
	ttl    time.Duration
	every  time.Duration
	now    func() time.Time
	log    *slog.Logger
	load   func() ([]Shared, error)
	save   func([]Shared) error

	mu     sync.Mutex
	loaded bool
	tokens []Shared // the newest first
}

// NewRotation returns the rotation of a cluster, which begins with the saved tokens. It
// reads nothing until it is used.
func NewRotation(m Minter, saved *Saved, log *slog.Logger) *Rotation {
	name, every := m.Conf.Name, cmp.Or(m.Conf.Token.Rotate.D(), m.TTL()/2)
	return &Rotation{
		minter: m, ttl: m.TTL(), every: every, now: m.Now, log: log,
		load: func() ([]Shared, error) { return saved.load(name) },
		save: func(tokens []Shared) error { return saved.save(name, tokens) },
	}
}

// rotate mints and deletes the tokens that are due, and returns the time of the next
// call.
func (r *Rotation) rotate(ctx context.Context) (next time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if !r.loaded {
		if r.tokens, err = r.load(); err != nil {
			return now.Add(retryDelay), err
		}
		r.loaded = true
	}
	if err := r.confirm(ctx); err != nil {
		return now.Add(retryDelay), err
	}
	if len(r.tokens) == 0 || !now.Before(r.tokens[0].Minted.Add(r.every)) {
		if err := r.mint(ctx, now); err != nil {
			return now.Add(retryDelay), err
		}
	}
	next = r.tokens[0].Minted.Add(r.every)
	if err := r.trim(ctx); err != nil {
		next = now.Add(retryDelay)
		r.log.Warn("old shared token not removed from the cluster", "err", err, "again", retryDelay)
	}
	return next, nil
}

// confirm checks the newest token. It creates a pending token in the cluster, and drops
// a token that was deleted in the cluster.
func (r *Rotation) confirm(ctx context.Context) error {
	if len(r.tokens) == 0 || !r.tokens[0].Expires.After(r.now()) {
		return nil
	}
	t := &r.tokens[0]
	if t.Pending {
		return r.finish(ctx, t)
	}
	if r.now().Sub(t.Minted) < signTime {
		return nil
	}
	exists, err := r.minter.signed(ctx, t.Token)
	if err != nil {
		return err
	}
	if !exists {
		r.log.Warn("shared token is gone from the cluster or not signed: minting another", "token", t.ID)
		if err := r.minter.Delete(ctx, t.Token); err != nil {
			return err
		}
		r.tokens = r.tokens[1:]
	}
	return nil
}

// mint makes a token. It saves the token before it creates it in the cluster, so that a
// server that ends in between forgets none.
func (r *Rotation) mint(ctx context.Context, now time.Time) error {
	tok, err := randomToken()
	if err != nil {
		return err
	}
	t := Shared{Token: tok, Minted: now, Expires: now.Add(r.ttl).Truncate(time.Second), Pending: true}
	r.tokens = append([]Shared{t}, r.tokens...)
	if err := r.save(r.tokens); err != nil {
		r.tokens = r.tokens[1:]
		return fmt.Errorf("save the shared tokens: %w", err)
	}
	return r.finish(ctx, &r.tokens[0])
}

// finish creates a pending token in the cluster.
func (r *Rotation) finish(ctx context.Context, t *Shared) error {
	if err := r.minter.put(ctx, t.Token, t.Expires); err != nil {
		return err
	}
	t.Pending = false
	if err := r.save(r.tokens); err != nil {
		return fmt.Errorf("save the shared tokens: %w", err)
	}
	r.log.Info("shared join token minted", "token", t.ID, "expires", t.Expires)
	return nil
}

// trim deletes surplus and expired tokens, the oldest first. The cluster's
// tokencleaner would delete expired ones too, where it runs.
func (r *Rotation) trim(ctx context.Context) error {
	before := len(r.tokens)
	for len(r.tokens) > 0 {
		oldest := r.tokens[len(r.tokens)-1]
		if len(r.tokens) <= maxShared && oldest.Expires.After(r.now()) {
			break
		}
		if err := r.minter.Delete(ctx, oldest.Token); err != nil {
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

// newest returns the newest token that nodes can use.
func (r *Rotation) newest() (Shared, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tokens {
		if !t.Pending && t.Expires.After(r.now()) {
			return t, true
		}
	}
	return Shared{}, false
}

// Run rotates the tokens until ctx is done.
func (r *Rotation) Run(ctx context.Context) {
	for {
		next, err := r.rotate(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.Warn("shared join token not rotated", "err", err, "again", next.Sub(r.now()))
		}
		if wait.Sleep(ctx, next.Sub(r.now())) != nil {
			return
		}
	}
}

// Current returns the token for nodes that join now. It mints one if there is none, and
// waits until the cluster has signed it.
func (r *Rotation) Current(ctx context.Context, m Minter) (Shared, *cluster.Info, error) {
	client := m.Client()
	t, ok := r.newest()
	if !ok {
		if _, err := r.rotate(ctx); err != nil {
			return Shared{}, nil, err
		}
		if t, ok = r.newest(); !ok {
			return Shared{}, nil, errors.New("there is no shared token")
		}
	}
	info, err := m.awaitSigned(ctx, t.Token, client)
	return t, info, err
}
