package token_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	bootstrap "k8s.io/cluster-bootstrap/token/util"

	"drover/kube/token"
)

// The policy of deploy/rbac.yaml reads the groups in base64. It allows drover's two
// groups, and no third one in any position.
func TestGroupsFitThePolicy(t *testing.T) {
	text, err := os.ReadFile("../../deploy/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`\['auth-extra-groups'\]\.matches\('(.*)'\)`).FindSubmatch(text)
	if m == nil {
		t.Fatal("rbac.yaml has no expression for the groups of a token")
	}
	fits := regexp.MustCompile(string(m[1]))
	encode := func(groups string) string { return base64.StdEncoding.EncodeToString([]byte(groups)) }
	groups := ""
	for i := range 200 {
		groups = token.Groups([]byte{byte(i)}, "abcdef", "m1c29", time.Unix(int64(i)*20_000_000, 0))
		if !fits.MatchString(encode(groups)) {
			t.Fatalf("the policy refuses %q", groups)
		}
		for g := range strings.SplitSeq(groups, ",") {
			if err := bootstrap.ValidateBootstrapGroupName(g); err != nil {
				t.Fatal(err)
			}
		}
	}
	const other = ",system:bootstrappers:kubeadm:default-node-token"
	for at := range len(groups) {
		for _, bad := range []string{groups[:at] + "," + groups[at+1:], groups[:at] + other + groups[min(at+len(other), len(groups)):], groups[:at] + other, groups[:at] + other + groups[at:]} {
			if strings.Count(bad, ",") > 1 && fits.MatchString(encode(bad)) {
				t.Errorf("the policy lets %q through", bad)
			}
		}
	}
	for _, bad := range []string{"system:bootstrappers:kubeadm:default-node-token", "system:bootstrappers:drover:node", groups + other, other[1:] + "," + groups, ""} {
		if fits.MatchString(encode(bad)) {
			t.Errorf("the policy lets %q through", bad)
		}
	}
}

func TestTokenIsNotPrinted(t *testing.T) {
	tok := token.Token{ID: "abcdef", Secret: "0123456789abcdef"}
	if printed := fmt.Sprintf("%v %s %q %+v %#v %v", tok, tok, tok, tok, tok, &tok); strings.Contains(printed, tok.Secret) {
		t.Errorf("%s shows %s", printed, tok.Secret)
	}
}
