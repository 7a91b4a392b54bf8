package cluster

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"drover/kube/client"
)

// Expiry returns when the credentials of a client of [Cluster.Client] end: those that are
// in the kubeconfig itself. The zero time means that they do not end, that there are none,
// or that they are in files that something else renews.
func Expiry(of client.Interface) time.Time {
	if c, ok := of.(*connection); ok && c.conf != nil {
		return expiryOf(c.conf)
	}
	return time.Time{}
}

// expiryOf returns when the first of a config's credentials ends.
func expiryOf(conf *rest.Config) (first time.Time) {
	if block, _ := pem.Decode(conf.CertData); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			first = cert.NotAfter
		}
	}
	if end := TokenExpiry(conf.BearerToken); first.IsZero() || !end.IsZero() && end.Before(first) {
		first = end
	}
	return first
}

// TokenExpiry returns when a token ends, if it is a JSON Web Token that says so
// (RFC 7519, section 4.1.4).
func TokenExpiry(token string) time.Time {
	var claims struct {
		Expiry float64 `json:"exp"` // seconds since 1970
	}
	if !Claims(token, &claims) || claims.Expiry <= 0 || claims.Expiry > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expiry), 0)
}

// Claims decodes the claims of a JSON Web Token, and reports whether it is one. Its signature
// is for the API server to check.
func Claims(token string, into any) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return err == nil && json.Unmarshal(payload, into) == nil
}
