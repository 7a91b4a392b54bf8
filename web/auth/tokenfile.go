package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"drover/internal/atomicfile"
	"drover/pools"
)

// stored is a token in the file.
type stored struct {
	pools.APIToken
	SHA256 string `json:"sha256"`
	Check  string `json:"check,omitempty"` // of the rest
}

// check returns the checksum of a stored token.
func (s stored) check() string {
	s.Check = ""
	data, _ := json.Marshal(s) // texts and times alone: no error
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// blank is in the place of a hash that was overwritten, see [replaceTokens].
var blank = strings.Repeat("0", 2*len(digest{}))

// readTokens returns the tokens in the file at path.
func readTokens(path string) (all []stored, err error) {
	data, err := atomicfile.Read(path, maxTokensFile)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	return all, err
}

// put has all tokens written, those too that become valid with it.
func (t *Tokens) put() (number uint64) {
	all := []stored{}
	for _, tokens := range []map[digest]pools.APIToken{*t.inUse.Load(), t.making} {
		for hash, n := range maps.All(tokens) {
			s := stored{APIToken: n, SHA256: hex.EncodeToString(hash[:])}
			s.Check = s.check()
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b stored) int { return strings.Compare(a.Name, b.Name) })
	data, _ := json.MarshalIndent(all, "", "  ") // texts and times alone: no error
	return t.file.Put(append(data, '\n'))
}

// replaceTokens writes the file of the tokens. A full disk takes no other file: then it overwrites
// the hashes of tokens that have ended in the old one, so that no restart brings them back. If
// that is all there is to write, the write has succeeded.
func replaceTokens(path string, data []byte, mode os.FileMode) error {
	err := atomicfile.Write(path, data, mode)
	if err == nil {
		return nil
	}
	var next []stored
	old, readErr := readTokens(path)
	if readErr != nil || json.Unmarshal(data, &next) != nil {
		return err
	}
	valid := map[string]bool{}
	for _, n := range next {
		valid[n.SHA256] = true
	}
	var ended []string
	for _, n := range old {
		if !valid[n.SHA256] && n.SHA256 != blank {
			ended = append(ended, n.SHA256)
		}
		delete(valid, n.SHA256)
	}
	if blankErr := overwrite(path, ended); blankErr != nil || len(valid) > 0 {
		return errors.Join(err, blankErr)
	}
	return nil
}

// overwrite blanks hashes in the file at path. Whatever a crash leaves of one is no valid secret.
func overwrite(path string, hashes []string) error {
	if len(hashes) == 0 {
		return nil
	}
	data, err := atomicfile.Read(path, maxTokensFile)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, hash := range hashes {
		if at := bytes.Index(data, []byte(hash)); at >= 0 {
			_, e := f.WriteAt([]byte(blank), int64(at))
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, f.Sync(), f.Close())
}
