package kube

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Groups of tokens. An API server notes the groups of whoever makes a
// certificate request in the request itself, where nobody can change them. So a
// token says in them what it was minted for, and the approver needs to remember
// nothing and to read no Secret.
//
// deploy/rbac.yaml gives joinGroup what a join needs, and sees to it that each
// token of drover's has these two groups and no other.
const (
	// joinGroup is who joins by a token of drover's.
	joinGroup = "system:bootstrappers:drover:node"
	// bootGroup, with a grant after it, is of one token alone.
	bootGroup = "system:bootstrappers:drover:boot:"
	// kubeadmGroup is who joins where the cluster itself approves. kubeadm gives
	// it all the rights that a join needs, and has its certificates approved,
	// whichever node they are for.
	kubeadmGroup = "system:bootstrappers:kubeadm:default-node-token"
)

// grant is what a token was minted for.
type grant struct {
	node    string // empty: any node of the cluster, by a shared token
	expires time.Time
}

// A sealed grant is three numbers in lower-case hexadecimal, which is what the
// name of a group may hold: when it expires (seconds since 1970), which key
// seals it, and the seal.
const (
	grantNumber = 8
	grantSeal   = 56
	grantLen    = 2*grantNumber + grantSeal
)

// groups returns the groups of the token with that id. Whoever can write
// Secrets of kube-system can make tokens of these groups too, but not the seal:
// drover would approve nothing for them.
func (g grant) groups(key []byte, id string) string {
	return joinGroup + "," + bootGroup + g.sealed(key, id)
}

func (g grant) sealed(key []byte, id string) string {
	expires := fmt.Sprintf("%08x", uint32(g.expires.Unix())) // until 2106
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "drover grant\n%s\n%q\n%s\n", id, g.node, expires)
	return expires + keyID(key) + hex.EncodeToString(mac.Sum(nil))[:grantSeal]
}

// keyID tells one key from another. It is no secret.
func keyID(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("drover key id"))
	return hex.EncodeToString(mac.Sum(nil))[:grantNumber]
}

// sealedGrant is a grant as it is read from the groups of a request.
type sealedGrant struct {
	text    string
	expires time.Time
}

// readGrant finds the grant in the groups of a user. It returns false for who is
// no token of a drover's.
func readGrant(groups []string) (sealedGrant, bool) {
	i := slices.IndexFunc(groups, func(g string) bool { return strings.HasPrefix(g, bootGroup) })
	if i < 0 || !slices.Contains(groups, joinGroup) {
		return sealedGrant{}, false
	}
	s := sealedGrant{text: strings.TrimPrefix(groups[i], bootGroup)}
	var seconds uint32
	if len(s.text) != grantLen {
		return s, true
	}
	if _, err := fmt.Sscanf(s.text[:grantNumber], "%08x", &seconds); err == nil {
		s.expires = time.Unix(int64(seconds), 0)
	}
	return s, true
}

// by tells whether it was sealed with key, or pretends to be.
func (s sealedGrant) by(key []byte) bool {
	return len(s.text) == grantLen && s.text[grantNumber:2*grantNumber] == keyID(key)
}

// of tells whether the token with that id was minted for the node; the empty one
// is that of shared tokens.
func (s sealedGrant) of(key []byte, id, node string) bool {
	return hmac.Equal([]byte(grant{node, s.expires}.sealed(key, id)), []byte(s.text))
}
