package config

import (
	"regexp"
	"strings"
	"time"

	"drover/pools"
	"drover/pools/option"
)

// secretKey is the pattern of the keys of a Secret.
const secretKey = `^[-._a-zA-Z0-9]{1,253}$`

// credentials checks the kubeconfig or Secret of a cluster, and its drain timeout.
func (c *checker) credentials(path, about string, cl pools.Cluster) {
	ref := cl.SecretRef
	switch {
	case cl.Kubeconfig != "" && c.isSet(path+".secretRef"):
		c.failf(path+".secretRef", "remove one of them", "%s has both a kubeconfig and a secretRef", about)
	case cl.Kubeconfig == "" && !c.isSet(path+".secretRef"):
		c.failf(path, "kubeconfig: "+cl.Name+".kubeconfig, or secretRef: {namespace: ...}", "%s has no kubeconfig", about)
	}
	if c.isSet(path + ".secretRef") {
		c.secretRef(path+".secretRef", about, ref)
	}
	if d := cl.Drain.Timeout.D(); d < time.Second || d > 24*time.Hour {
		c.failf(path+".drain.timeout", "5m suits most", "%s: drain timeout %s is not from 1s to 24h", about, cl.Drain.Timeout)
	}
}

func (c *checker) secretRef(path, about string, ref pools.SecretRef) {
	switch {
	case ref.Namespace == "" && !c.isSet(path+".namespace"):
		c.failf(path, "secretRef: {namespace: tenants}", "%s: its secretRef has no namespace", about)
	case !c.syntax.label.MatchString(ref.Namespace):
		c.failf(path+".namespace", "use a-z, 0-9 and '-', 63 at most", "%s: %q cannot be the name of a namespace", about, ref.Namespace)
	}
	if ref.Name != "" && (!option.IsDomain(ref.Name) || ref.Name != strings.ToLower(ref.Name)) {
		c.failf(path+".name", "use a-z, 0-9, '-' and '.', 253 at most", "%s: %q cannot be the name of a Secret", about, ref.Name)
	}
	if ref.Key != "" && !regexp.MustCompile(secretKey).MatchString(ref.Key) {
		c.failf(path+".key", "the key in the Secret's data, such as value or admin.conf", "%s: %q cannot be a key of a Secret", about, ref.Key)
	}
}
