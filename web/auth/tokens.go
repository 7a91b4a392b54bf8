package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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

	"drover/internal/atomicfile"
	"drover/pools"
)

// Bounds of tokens.
const (
	maxTokens     = 1000
	maxTokenPools = 100
	maxTokensFile = 16 << 20 // bytes
)

// Tokens are the named tokens of the API. Their file has the hashes of their secrets: these
// are random, so that nobody finds one by its hash. Reading never waits for the disk. A secret
// ends in RAM first: a disk that hangs or is full keeps none in use.
type Tokens struct {
	now  func() time.Time
	file atomicfile.Kept

	mu     sync.Mutex // held by changes, never while the disk works
	inUse  atomic.Pointer[map[digest]pools.APIToken]
	making map[digest]pools.APIToken // that are not on disk yet, and not in use
}

// digest is the SHA-256 of a secret.
type digest [sha256.Size]byte

// OpenTokens reads the tokens in the file at path. If there is none, there are no tokens.
func OpenTokens(path string, now func() time.Time) (*Tokens, error) {
	t := &Tokens{now: now, file: atomicfile.Kept{Path: path, Mode: 0o600, Replace: replaceTokens}, making: map[digest]pools.APIToken{}}
	byHash := map[digest]pools.APIToken{}
	t.inUse.Store(&byHash)
	all, err := readTokens(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	for _, s := range all {
		hash, e := hex.DecodeString(s.SHA256)
		switch {
		case e != nil || len(hash) != sha256.Size:
			err = errors.Join(err, fmt.Errorf("token %q: sha256 %q is no digest", s.Name, s.SHA256))
		case s.SHA256 == blank: // it has ended
		case s.Check != s.check():
			err = errors.Join(err, fmt.Errorf("token %q is damaged: its checksum is another", s.Name))
		default:
			byHash[digest(hash)] = s.APIToken
		}
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

// Create makes a token, durably, and returns it with its secret. It is in use once it is on disk.
func (t *Tokens) Create(r pools.APITokenRequest, by string) (pools.NewAPIToken, error) {
	secret := newSecret()
	hash := sha256.Sum256([]byte(secret))
	t.mu.Lock()
	n, err := t.Check(r, by)
	for _, other := range t.making {
		if err == nil && other.Name == r.Name {
			err = fmt.Errorf("%w: %q: the disk does not have it yet", pools.ErrTokenExists, r.Name)
		}
	}
	if err != nil {
		t.mu.Unlock()
		return pools.NewAPIToken{}, err
	}
	t.use(t.without(n.Name)) // one that has expired
	t.making[hash] = n
	number := t.put()
	t.mu.Unlock()

	err = t.file.Wait(number)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.making, hash)
	if err != nil {
		t.put() // without it, should the disk get it yet
		return pools.NewAPIToken{}, fmt.Errorf("tokens of the API: %w", err)
	}
	all := t.without(n.Name)
	all[hash] = n
	t.use(all)
	return pools.NewAPIToken{APIToken: n, Token: secret}, nil
}

// Rotate gives a token another secret. The old secret and its sessions end at once, and do not
// return with the next start, unless the error is [pools.ErrNotStored]. A token that expires gets
// as much time again.
func (t *Tokens) Rotate(name string) (pools.NewAPIToken, error) {
	secret := newSecret()
	n, err := t.end(name, func(n pools.APIToken, all map[digest]pools.APIToken) pools.APIToken {
		now := t.now().UTC()
		if !n.Expires.IsZero() {
			n.Expires = now.Add(n.Expires.Sub(n.Created))
		}
		n.Created = now
		all[sha256.Sum256([]byte(secret))] = n
		return n
	})
	if errors.Is(err, pools.ErrNotStored) {
		err = fmt.Errorf("the old secret of token %q is not valid any more; the new one is %w: rotate again", name, err)
	}
	if err != nil {
		return pools.NewAPIToken{}, err
	}
	return pools.NewAPIToken{APIToken: n, Token: secret}, nil
}

// Revoke removes a token. It and its sessions end at once, and do not return with the next start,
// unless the error is [pools.ErrNotStored].
func (t *Tokens) Revoke(name string) error {
	_, err := t.end(name, func(n pools.APIToken, _ map[digest]pools.APIToken) pools.APIToken { return n })
	if errors.Is(err, pools.ErrNotStored) {
		err = fmt.Errorf("token %q is revoked, and not valid any more; that is %w, and a restart before that brings it back", name, err)
	}
	return err
}

// end takes a token out of use at once, has next change the others, and waits for the disk.
func (t *Tokens) end(name string, next func(n pools.APIToken, all map[digest]pools.APIToken) pools.APIToken) (pools.APIToken, error) {
	t.mu.Lock()
	n, ok := t.named(name)
	if !ok {
		t.mu.Unlock()
		return n, fmt.Errorf("%w: %q", pools.ErrNoToken, name)
	}
	all := t.without(name)
	n = next(n, all)
	t.use(all)
	number := t.put()
	t.mu.Unlock()
	if err := t.file.Wait(number); err != nil {
		return n, fmt.Errorf("%w (%w)", pools.ErrNotStored, err)
	}
	return n, nil
}

// Close ends the tries to write what is not on disk.
func (t *Tokens) Close() { t.file.Close() }

// without returns a copy of all tokens in use but one.
func (t *Tokens) without(name string) map[digest]pools.APIToken {
	all := maps.Clone(*t.inUse.Load())
	maps.DeleteFunc(all, func(_ digest, n pools.APIToken) bool { return n.Name == name })
	return all
}

func (t *Tokens) use(all map[digest]pools.APIToken) { t.inUse.Store(&all) }

// newSecret returns 256 random bits as hexadecimal digits.
func newSecret() string {
	random := make([]byte, 32)
	rand.Read(random) // never fails
	return hex.EncodeToString(random)
}
