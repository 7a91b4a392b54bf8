package credentials

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/client"
	"drover/kube/cluster"
)

// Account is a ServiceAccount.
type Account struct{ Namespace, Name string }

func (a Account) String() string { return a.Namespace + "/" + a.Name }

// Drover is drover's own in a tenant's cluster, see deploy/rbac.yaml.
var Drover = Account{metav1.NamespaceSystem, "drover"}

// Request asks a cluster for a token of a ServiceAccount. The API server may give it another
// end than after life; end is the right one.
func Request(ctx context.Context, client client.Interface, of Account, life time.Duration) (token string, end time.Time, err error) {
	seconds := int64(life / time.Second)
	made, err := client.CoreV1().ServiceAccounts(of.Namespace).CreateToken(ctx, of.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", end, err
	}
	return made.Status.Token, made.Status.ExpirationTimestamp.Time, nil
}

// RenewAt returns when a token is to be renewed: when a third of its life is left.
func RenewAt(begin, end time.Time) time.Time { return end.Add(-end.Sub(begin) / 3) }

// claims are the parts of a token that drover reads.
type claims struct {
	Account    Account
	Begin, End time.Time
}

// AccountOf returns the ServiceAccount whose token a client of [cluster.Cluster.Client] has,
// if it is a token that a [Renewer] renews.
func AccountOf(client client.Interface) (of Account, ok bool) {
	c, ok := parse(cluster.BearerOf(client).Used)
	return c.Account, ok
}

// maxToken is more than any token of a ServiceAccount has, in bytes.
const maxToken = 16 << 10

// jwt is the form of a token, so that it needs no quotes in YAML.
var jwt = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// parse reads a token of a ServiceAccount. ok is false for other tokens, for those that do
// not end, and for those that end with a pod, a Secret or a Node.
func parse(token string) (c claims, ok bool) {
	var found struct {
		Subject string                     `json:"sub"`
		Begin   float64                    `json:"iat"` // seconds since 1970
		Bound   map[string]json.RawMessage `json:"kubernetes.io"`
	}
	c.End = cluster.TokenExpiry(token)
	if len(token) > maxToken || !jwt.MatchString(token) || !cluster.Claims(token, &found) || found.Begin <= 0 || c.End.Unix() <= int64(found.Begin) {
		return claims{}, false
	}
	c.Begin = time.Unix(int64(found.Begin), 0)
	for _, object := range []string{"pod", "secret", "node"} {
		if _, is := found.Bound[object]; is {
			return claims{}, false
		}
	}
	of := strings.Split(found.Subject, ":")
	if len(of) != 4 || of[0] != "system" || of[1] != "serviceaccount" || of[2] == "" || of[3] == "" {
		return claims{}, false
	}
	c.Account = Account{of[2], of[3]}
	return c, true
}
