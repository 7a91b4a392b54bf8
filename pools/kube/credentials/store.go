package credentials

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"drover/pools/atomicfile"
)

// maxStore is the largest file of a [Store], in bytes.
const maxStore = 64 << 20

// Store is a file with the renewed tokens of kubeconfigs that drover may not write. A token
// counts only as long as its kubeconfig has the one that it replaces. The zero value is a
// store in RAM. All methods may be called from several goroutines.
type Store struct {
	path string
	now  func() time.Time

	mu  sync.Mutex
	all map[string]renewed // by cluster
}

// renewed is the newest token in place of another one.
type renewed struct {
	For   string `json:"for"` // the SHA-256 of the token in the kubeconfig
	Token string `json:"token"`
}

// Open returns the store in the file path. Without a file it is empty. A file that cannot be
// used is an error, with which the store is empty, too: its clusters have the tokens of their
// kubeconfigs.
func Open(path string, now func() time.Time) (*Store, error) {
	s := &Store{path: path, now: now, all: map[string]renewed{}}
	data, err := atomicfile.Read(path, maxStore)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, err
	}
	if json.Unmarshal(data, &s.all) != nil || s.all == nil { // the error may quote a token
		s.all = map[string]renewed{}
		return s, fmt.Errorf("%s: not as drover has written it", path)
	}
	return s, nil
}

// Token returns the newest token of a cluster whose kubeconfig has the token given; empty if
// that is the newest one.
func (s *Store) Token(cluster, given string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.all[cluster]; r.For == digest(given) {
		return r.Token
	}
	return ""
}

// Set stores a token, durably. It drops the tokens that have ended.
func (s *Store) Set(cluster, given, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]renewed{}
	for name, r := range s.all {
		if c, ok := parse(r.Token); ok && s.now().Before(c.End) {
			next[name] = r
		}
	}
	next[cluster] = renewed{digest(given), token}
	if s.path != "" {
		data, err := json.MarshalIndent(next, "", "  ")
		if err == nil {
			err = atomicfile.Write(s.path, append(data, '\n'), 0o600)
		}
		if err != nil {
			return err
		}
	}
	s.all = next
	return nil
}

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
