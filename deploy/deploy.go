// Package deploy has the manifests for a tenant's cluster, which drover shows and applies.
package deploy

import (
	"bytes"
	_ "embed" // for the files
	"strings"
)

// RBAC is rbac.yaml: drover's rights in a tenant's cluster.
//
//go:embed rbac.yaml
var RBAC []byte

// HostsRBAC is hosts-rbac.yaml: the rights that hosts outside the cluster need, and drover
// for them.
//
//go:embed hosts-rbac.yaml
var HostsRBAC []byte

// kubeadmGroup is the group of kubeadm's tokens, in the base64 of a Secret:
// system:bootstrappers:kubeadm:default-node-token.
const kubeadmGroup = "'c3lzdGVtOmJvb3RzdHJhcHBlcnM6a3ViZWFkbTpkZWZhdWx0LW5vZGUtdG9rZW4='"

// Rights are the optional rights of [RBAC] that a cluster's config uses.
type Rights struct {
	Approve bool // approve client certificates of nodes, by tokens of drover's own groups; else tokens are in kubeadm's group
	Serve   bool // approve serving certificates of nodes
	Renew   bool // renew the token of drover's own credentials
	Hosts   bool // keep hosts outside the cluster: with [HostsRBAC]
}

// Manifest returns [RBAC] without the unused rights, and [HostsRBAC] if it is used.
func Manifest(r Rights) []byte {
	docs := strings.Split(string(RBAC), "\n---\n")
	kept := docs[:0]
	for _, doc := range docs {
		switch {
		case strings.Contains(doc, "\n  name: drover-approver-serving\n") && (!r.Serve || !r.Approve):
		case strings.Contains(doc, "\n  name: drover-approver\n") && !r.Approve:
		case strings.Contains(doc, "\n  name: drover-used-tokens") && !r.Approve: // in the Namespace it is the last line
		case strings.Contains(doc, "\n  name: drover-renewal\n") && !r.Renew:
		default:
			kept = append(kept, doc)
		}
	}
	if r.Hosts {
		kept = append(kept, string(HostsRBAC))
	}
	text := []byte(strings.Join(kept, "\n---\n"))
	if r.Approve {
		return text
	}
	// The policy allows tokens of one group only: a thief of drover's credentials
	// must not choose the group with more rights.
	const groups = "object.data['auth-extra-groups']"
	from := bytes.Index(text, []byte(groups+".matches("))
	to := from + bytes.IndexByte(text[from:], '\n')
	return bytes.Join([][]byte{text[:from], []byte(groups + " == " + kubeadmGroup), text[to:]}, nil)
}
