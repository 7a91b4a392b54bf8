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

	"drover/internal/atomicfile"
)

// maxStore is the largest file of a [Store], in bytes.
const maxStore = 64 << 20

// Store is a file with the renewed tokens of kubeconfigs that drover may not write. A token
// counts only as long as its kubeconfig has the one that it replaces. The zero value is a
// store in RAM. All methods may be called from several goroutines.
type Store struct {
	file atomicfile.Kept // without a path: in RAM alone
	now  func() time.Time

	mu  sync.Mutex         // never held while the disk works
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
	s := &Store{file: atomicfile.Kept{Path: path, Mode: 0o600}, now: now, all: map[string]renewed{}}
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

// Set stores a token. It drops the tokens that have ended. After an error the token is valid, and
// not on disk yet.
func (s *Store) Set(cluster, given, token string) error {
	number, err := s.put(cluster, given, token)
	if err != nil || s.file.Path == "" {
		return err
	}
	return s.file.Wait(number)
}

func (s *Store) put(cluster, given, token string) (number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]renewed{}
	for name, r := range s.all {
		if c, ok := parse(r.Token); ok && s.now().Before(c.End) {
			next[name] = r
		}
	}
	next[cluster] = renewed{digest(given), token}
	s.all = next
	if s.file.Path == "" {
		return 0, nil
	}
	data, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return 0, err
	}
	return s.file.Put(append(data, '\n')), nil
}

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
