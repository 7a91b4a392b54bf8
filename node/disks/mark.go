package disks

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// tenantMark says whose data a disk has. It is between the partition table and the first
// partition, where neither a change of the table nor a file system reaches it.
//
// The proof is made with a key that only nodes of the tenant get: root on a node can write any
// mark, but none that makes the next tenant mount its files.
type tenantMark struct {
	Node    string `json:"node"`              // name of the node that used the disk last
	Tenant  string `json:"tenant"`            // see [Tenant]
	Disk    string `json:"disk"`              // digest of the disk's serial number: a copy on another disk is no mark
	Proof   string `json:"proof"`             // see [tenantMark.prove]
	Erasing bool   `json:"erasing,omitempty"` // an erase has begun, and nothing may be mounted before its end
}

const (
	markAt    = 512 << 10 // bytes from the begin of the disk
	markBlock = 4 << 10   // bytes that it has for itself
	markMax   = 512       // bytes of text: a sector is written as a whole
	markHead  = "drover tenant 1\n"
)

// errDamaged is the error of a mark that is none of this version, or changed.
var errDamaged = errors.New("the mark of its tenant is damaged, or of a later version of drover")

// prove returns the proof of a mark.
func (m tenantMark) prove(key []byte) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "drover/1 disk mark\x00%s\x00%s\x00%s", m.Node, m.Tenant, m.Disk)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// isProved reports whether a node of the mark's tenant made it.
func (m tenantMark) isProved(key []byte) bool {
	return hmac.Equal([]byte(m.Proof), []byte(m.prove(key)))
}

// encode returns the block of a mark: a line that names the version, the mark, and their
// digest.
func (m tenantMark) encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	b := slices.Concat([]byte(markHead), text, []byte("\n"))
	sum := sha256.Sum256(b)
	b = append(hex.AppendEncode(b, sum[:]), '\n')
	if len(b) > markMax {
		return nil, fmt.Errorf("the mark of tenant %q and node %q has %d bytes, more than %d", m.Tenant, m.Node, len(b), markMax)
	}
	return append(b, make([]byte, markBlock-len(b))...), nil
}

// decodeMark returns the mark of a block; nil for one of zeros.
func decodeMark(b []byte) (*tenantMark, error) {
	if isZero(b) {
		return nil, nil
	}
	text, rest, ok := bytes.Cut(b, []byte("\n\x00"))
	body, sum, found := bytes.Cut(bytes.TrimPrefix(text, []byte(markHead)), []byte("\n"))
	want := sha256.Sum256(slices.Concat([]byte(markHead), body, []byte("\n")))
	if !ok || !found || !isZero(rest) || !bytes.HasPrefix(b, []byte(markHead)) || hex.EncodeToString(want[:]) != string(sum) {
		return nil, errDamaged
	}
	var m tenantMark
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if d.Decode(&m) != nil || d.More() {
		return nil, errDamaged
	}
	for _, s := range []string{m.Node, m.Tenant, m.Disk, m.Proof} { // they are printed
		if s == "" || strings.Trim(s, " -.0123456789abcdefghijklmnopqrstuvwxyz") != "" {
			return nil, errDamaged
		}
	}
	return &m, nil
}

// readMark reads the mark of a disk; nil without one.
func readMark(f io.ReaderAt) (*tenantMark, error) {
	b := make([]byte, markBlock)
	if _, err := f.ReadAt(b, markAt); err != nil {
		return nil, err
	}
	return decodeMark(b)
}

func isZero(b []byte) bool { return firstNonzero(b) < 0 }

// serialDigest returns what a mark says of a disk.
func serialDigest(serial string) string {
	sum := sha256.Sum256([]byte("drover/1 serial " + strings.ToLower(serial)))
	return hex.EncodeToString(sum[:8])
}

// newMark returns the mark of a disk for a node.
func (d disk) newMark(node string, t Tenant) tenantMark {
	serial := ""
	if len(d.serials) > 0 {
		serial = d.serials[0]
	}
	m := tenantMark{Node: node, Tenant: t.Name, Disk: serialDigest(serial)}
	m.Proof = m.prove(t.Key)
	return m
}

// bears reports whether a mark was made for this disk, and not for one that it is a copy of.
func (d disk) bears(m tenantMark) bool {
	return len(d.serials) == 0 && m.Disk == serialDigest("") ||
		slices.ContainsFunc(d.serials, func(s string) bool { return m.Disk == serialDigest(s) })
}
