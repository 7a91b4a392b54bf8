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

// Groups of tokens. An API server copies the groups of a client into each certificate
// request of that client. They cannot be changed there.
//
// deploy/rbac.yaml gives JoinGroup the rights that a join needs, and enforces that
// each token of drover's has JoinGroup, one group that begins with BootGroup, and
// no other.
const (
	// JoinGroup is the group of all tokens whose requests drover approves.
	JoinGroup = "system:bootstrappers:drover:node"
	// BootGroup, followed by a sealed grant, is the group of a single token.
	BootGroup = "system:bootstrappers:drover:boot:"
	// KubeadmGroup is the group of all tokens if the cluster's own approver is in use.
	// kubeadm gives it the rights that a join needs, and the cluster approves its
	// requests for any node.
	KubeadmGroup = "system:bootstrappers:kubeadm:default-node-token"
)

// A sealed grant is three numbers in lower-case hexadecimal, which are valid in the name
// of a group: its expiry (seconds since 1970), the ID of the sealing key, and the seal.
const (
	numberLen = 8 // of expiry and key ID
	sealLen   = 56
	grantLen  = 2*numberLen + sealLen
)

// Groups returns the groups of the token with that ID, separated by commas. The token is
// for one node, or for all if node is empty, until expires. A client with write access
// to the Secrets of kube-system can make tokens with these groups, but not with a valid
// seal, so drover approves nothing for them.
func Groups(key []byte, id, node string, expires time.Time) string {
	return JoinGroup + "," + BootGroup + seal(key, id, node, expires)
}

// seal returns a sealed grant.
func seal(key []byte, id, node string, expires time.Time) string {
	end := fmt.Sprintf("%08x", uint32(expires.Unix())) // until 2106
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "drover grant\n%s\n%q\n%s\n", id, node, end)
	return end + keyID(key) + hex.EncodeToString(mac.Sum(nil))[:sealLen]
}

// keyID returns an identifier of a key. It is not a secret.
func keyID(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("drover key id"))
	return hex.EncodeToString(mac.Sum(nil))[:numberLen]
}

// SealedGrant is the grant of a token, as the groups of a request contain it.
type SealedGrant struct {
	Text    string    // of the group, after BootGroup
	Expires time.Time // of the token
}

// ReadGrant returns the grant in the groups of a client. It returns false if the groups
// are not those of a token that a drover minted.
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
	if _, err := fmt.Sscanf(s.Text[:numberLen], "%08x", &seconds); err == nil {
		s.Expires = time.Unix(int64(seconds), 0)
	}
	return s, true
}

// ClaimsKey reports whether the grant has the ID of key. It does not verify the seal.
func (s SealedGrant) ClaimsKey(key []byte) bool {
	return len(s.Text) == grantLen && s.Text[numberLen:2*numberLen] == keyID(key)
}

// Verify reports whether the token with that ID was minted for the node by the holder of
// key. For shared tokens node is empty.
func (s SealedGrant) Verify(key []byte, id, node string) bool {
	return hmac.Equal([]byte(seal(key, id, node, s.Expires)), []byte(s.Text))
}
