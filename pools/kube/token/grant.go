package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Groups of tokens. An API server notes the groups of a client in each certificate
// request of that client, where nobody can change them.
//
// deploy/rbac.yaml gives JoinGroup the rights that a join needs, and enforces that
// each token of drover's has JoinGroup, one group that begins with BootGroup, and
// no other.
const (
	// JoinGroup is the group of all tokens that drover approves requests of.
	JoinGroup = "system:bootstrappers:drover:node"
	// BootGroup, followed by a sealed grant, is the group of one token alone.
	BootGroup = "system:bootstrappers:drover:boot:"
	// KubeadmGroup is the group of tokens where the cluster itself approves. kubeadm
	// gives it all the rights that a join needs, and has its certificates approved,
	// whichever node they are for.
	KubeadmGroup = "system:bootstrappers:kubeadm:default-node-token"
)

// A sealed grant is three numbers in lower-case hexadecimal, since the name of a
// group may hold those: the time of its end (seconds since 1970), the ID of the
// sealing key, and the seal.
const (
	grantNumber = 8
	grantSeal   = 56
	grantLen    = 2*grantNumber + grantSeal
)

// Groups returns the groups of a token, separated by a comma: the token with that
// ID, minted for a node, or for all if node is empty, until expires. Anyone who can
// write Secrets of kube-system can make tokens of these groups too, but not the seal:
// drover would approve nothing for them.
func Groups(key []byte, id, node string, expires time.Time) string {
	return JoinGroup + "," + BootGroup + seal(key, id, node, expires)
}

func seal(key []byte, id, node string, expires time.Time) string {
	end := fmt.Sprintf("%08x", uint32(expires.Unix())) // until 2106
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "drover grant\n%s\n%q\n%s\n", id, node, end)
	return end + keyID(key) + hex.EncodeToString(mac.Sum(nil))[:grantSeal]
}

// keyID identifies a key. It is no secret.
func keyID(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("drover key id"))
	return hex.EncodeToString(mac.Sum(nil))[:grantNumber]
}

// SealedGrant is what a token was minted for, as the groups of a request contain it.
type SealedGrant struct {
	Text    string    // what follows BootGroup
	Expires time.Time // end of the token
}

// ReadGrant finds the grant in the groups of a client. It returns false if the
// client used no token of a drover's.
func ReadGrant(groups []string) (SealedGrant, bool) {
	i := slices.IndexFunc(groups, func(g string) bool { return strings.HasPrefix(g, BootGroup) })
	if i < 0 || !slices.Contains(groups, JoinGroup) {
		return SealedGrant{}, false
	}
	s := SealedGrant{Text: strings.TrimPrefix(groups[i], BootGroup)}
	var seconds uint32
	if len(s.Text) != grantLen {
		return s, true
	}
	if _, err := fmt.Sscanf(s.Text[:grantNumber], "%08x", &seconds); err == nil {
		s.Expires = time.Unix(int64(seconds), 0)
	}
	return s, true
}

// ClaimsKey reports whether the grant was sealed with key, or pretends to be.
func (s SealedGrant) ClaimsKey(key []byte) bool {
	return len(s.Text) == grantLen && s.Text[grantNumber:2*grantNumber] == keyID(key)
}

// Verify reports whether the token with that ID was minted for the node. The empty
// node is that of shared tokens.
func (s SealedGrant) Verify(key []byte, id, node string) bool {
	return hmac.Equal([]byte(seal(key, id, node, s.Expires)), []byte(s.Text))
}
