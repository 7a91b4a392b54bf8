// Package deploy holds the files that set drover up elsewhere, for the program
// to show and to apply.
package deploy

import (
	"bytes"
	_ "embed" // for the files
	"strings"
)

// RBAC is what drover may do in a tenant's cluster: rbac.yaml.
//
//go:embed rbac.yaml
var RBAC []byte

// kubeadmGroup is the group that kubeadm gives its tokens, as a Secret holds it:
// system:bootstrappers:kubeadm:default-node-token.
const kubeadmGroup = "'c3lzdGVtOmJvb3RzdHJhcHBlcnM6a3ViZWFkbTpkZWZhdWx0LW5vZGUtdG9rZW4='"

// Rights says which of the rights of RBAC drover has a use for.
type Rights struct {
	Approve bool // client certificates of nodes, by tokens of drover's own groups; else tokens are of kubeadm's
	Serve   bool // serving certificates of nodes
}

// Manifest returns RBAC without what there is no use for.
func Manifest(r Rights) []byte {
	docs := strings.Split(string(RBAC), "\n---\n")
	kept := docs[:0]
	for _, doc := range docs {
		switch {
		case strings.Contains(doc, "\n  name: drover-approver-serving\n") && (!r.Serve || !r.Approve):
		case strings.Contains(doc, "\n  name: drover-approver\n") && !r.Approve:
		default:
			kept = append(kept, doc)
		}
	}
	text := []byte(strings.Join(kept, "\n---\n"))
	if r.Approve {
		return text
	}
	// The policy of tokens knows one kind of group at a time: who has stolen
	// drover's credentials must not choose the one with more rights.
	const groups = "object.data['auth-extra-groups']"
	from := bytes.Index(text, []byte(groups+".matches("))
	to := from + bytes.IndexByte(text[from:], '\n')
	return bytes.Join([][]byte{text[:from], []byte(groups + " == " + kubeadmGroup), text[to:]}, nil)
}
