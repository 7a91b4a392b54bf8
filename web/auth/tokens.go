package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"drover/pools"
	"drover/pools/atomicfile"
)

// Bounds of tokens.
const (
	maxTokens     = 1000
	maxTokenPools = 100
	maxTokensFile = 16 << 20 // bytes
)

// Tokens are the named tokens of the API. Their file has the hashes of their secrets: these
// are random, so that nobody finds one by its hash. Reading never waits for the disk.
type Tokens struct {
	path string
	now  func() time.Time

	mu    sync.Mutex // held by changes
	inUse atomic.Pointer[map[digest]pools.APIToken]
}

// digest is the SHA-256 of a secret.
type digest [sha256.Size]byte

// stored is a token in the file.
type stored struct {
	pools.APIToken
	SHA256 string `json:"sha256"`
}

// OpenTokens reads the tokens in the file at path. If there is none, there are no tokens.
func OpenTokens(path string, now func() time.Time) (*Tokens, error) {
	t := &Tokens{path: path, now: now}
	byHash := map[digest]pools.APIToken{}
	t.inUse.Store(&byHash)
	data, err := atomicfile.Read(path, maxTokensFile)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	var all []stored
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	for _, s := range all {
		hash, e := hex.DecodeString(s.SHA256)
		if e != nil || len(hash) != sha256.Size {
			err = errors.Join(err, fmt.Errorf("token %q: sha256 %q is no digest", s.Name, s.SHA256))
			continue
		}
		byHash[digest(hash)] = s.APIToken
	}
	if err != nil {
		return nil, fmt.Errorf("tokens of the API: %s: %w (restore the file, or remove it: then there is the token in api.token alone)", path, err)
	}
	return t, nil
}

// List returns all tokens, by name, also those that have expired.
func (t *Tokens) List() []pools.APIToken {
	return slices.SortedFunc(maps.Values(*t.inUse.Load()), func(a, b pools.APIToken) int { return strings.Compare(a.Name, b.Name) })
}

// of returns the token in force with a hash.
func (t *Tokens) of(hash digest) (pools.APIToken, bool) {
	if t == nil {
		return pools.APIToken{}, false
	}
	n, ok := (*t.inUse.Load())[hash]
	return n, ok && !t.expired(&n)
}

func (t *Tokens) expired(n *pools.APIToken) bool {
	return !n.Expires.IsZero() && !t.now().Before(n.Expires)
}

var tokenName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// Check returns the token for a request, and the error if it cannot be made. An expired
// token of that name makes way.
func (t *Tokens) Check(r pools.APITokenRequest, by string) (pools.APIToken, error) {
	now := t.now().UTC()
	n := pools.APIToken{Name: r.Name, Role: r.Role, Pools: r.Pools, Created: now, By: by}
	if r.TTL > 0 && r.TTL != pools.Infinite {
		n.Expires = now.Add(r.TTL.D())
	}
	switch {
	case !tokenName.MatchString(r.Name):
		return n, pools.Hint("write up to 63 small letters, digits, dots and dashes, such as ci", "%q is not a name of a token", r.Name)
	case !slices.Contains(pools.Roles(), r.Role):
		return n, pools.Hint(fmt.Sprintf("there are %q", pools.Roles()), "unknown role %q", r.Role)
	case len(r.Pools) > 0 && r.Role != pools.RoleOperator:
		return n, pools.Hint("leave the pools out", "a token with the role %q is not limited to pools", r.Role)
	case r.Pools != nil && len(r.Pools) == 0: // a list that came out empty must not give all of them
		return n, pools.Hint("leave pools out for all pools", "pools is empty")
	case len(r.Pools) > maxTokenPools:
		return n, pools.Hint("leave them out for all pools", "%d pools are too many: %d are allowed", len(r.Pools), maxTokenPools)
	}
	all := *t.inUse.Load()
	if len(all) >= maxTokens {
		return n, pools.Hint("revoke some", "there are %d tokens already", len(all))
	}
	if other, ok := t.named(r.Name); ok && !t.expired(&other) {
		return n, fmt.Errorf("%w: %q", pools.ErrTokenExists, r.Name)
	}
	return n, nil
}

func (t *Tokens) named(name string) (pools.APIToken, bool) {
	for _, n := range *t.inUse.Load() {
		if n.Name == name {
			return n, true
		}
	}
	return pools.APIToken{}, false
}

// Create makes a token, durably, and returns it with its secret.
func (t *Tokens) Create(r pools.APITokenRequest, by string) (pools.NewAPIToken, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.Check(r, by)
	if err != nil {
		return pools.NewAPIToken{}, err
	}
	return t.mint(n)
}

// Rotate gives a token another secret, durably. The old secret and its sessions end. A
// token that expires gets as much time again.
func (t *Tokens) Rotate(name string) (pools.NewAPIToken, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, ok := t.named(name)
	if !ok {
		return pools.NewAPIToken{}, fmt.Errorf("%w: %q", pools.ErrNoToken, name)
	}
	now := t.now().UTC()
	if !n.Expires.IsZero() {
		n.Expires = now.Add(n.Expires.Sub(n.Created))
	}
	n.Created = now
	return t.mint(n)
}

// Revoke removes a token, durably. Its sessions end.
func (t *Tokens) Revoke(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.named(name); !ok {
		return fmt.Errorf("%w: %q", pools.ErrNoToken, name)
	}
	return t.store(t.without(name))
}

// mint stores a token with a new secret, in place of one of that name.
func (t *Tokens) mint(n pools.APIToken) (pools.NewAPIToken, error) {
	secret := newSecret()
	all := t.without(n.Name)
	all[sha256.Sum256([]byte(secret))] = n
	return pools.NewAPIToken{APIToken: n, Token: secret}, t.store(all)
}

// without returns a copy of all tokens but one.
func (t *Tokens) without(name string) map[digest]pools.APIToken {
	all := maps.Clone(*t.inUse.Load())
	maps.DeleteFunc(all, func(_ digest, n pools.APIToken) bool { return n.Name == name })
	return all
}

// store writes tokens to the file, and then puts them in force.
func (t *Tokens) store(byHash map[digest]pools.APIToken) error {
	all := []stored{}
	for hash, n := range byHash {
		all = append(all, stored{n, hex.EncodeToString(hash[:])})
	}
	slices.SortFunc(all, func(a, b stored) int { return strings.Compare(a.Name, b.Name) })
	data, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = atomicfile.Write(t.path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("tokens of the API: %w", err)
	}
	t.inUse.Store(&byHash)
	return nil
}

// newSecret returns 256 random bits as hexadecimal digits.
func newSecret() string {
	random := make([]byte, 32)
	rand.Read(random) // never fails
	return hex.EncodeToString(random)
}
