package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/node"
)

// The limits of the Nodes that are looked at, in pages.
const (
	namesPage  = 500
	namesPages = 40
)

// names notes which nodes of the config have the name of a Node that drover does not own. They
// cannot join.
func (i *inspection) names(ctx context.Context, nodes []string) {
	if len(nodes) == 0 {
		return
	}
	const what = "names of nodes"
	var all []string
	for _, selector := range []string{"!" + node.Managed, node.Managed + ",node-role.kubernetes.io/control-plane"} {
		opts := metav1.ListOptions{LabelSelector: selector, Limit: namesPage}
		for range namesPages {
			list, err := i.client.CoreV1().Nodes().List(ctx, opts)
			if err != nil {
				i.note(what, "", i.Wrap("list Nodes", err))
				return
			}
			all = append(all, collisions(list.Items, nodes)...)
			if opts.Continue = list.Continue; opts.Continue == "" {
				break
			}
		}
	}
	var err error
	if n := len(all); n > 0 {
		err = fmt.Errorf("%d nodes of the config cannot join: %s", n, strings.Join(all[:min(n, 3)], "; "))
	}
	i.note(what, "no node of the config has the name of a Node that drover does not own", err)
}

// collisions says why the Nodes that have the name of a node keep it from joining. Who wrote their
// seals is for the server to tell, which has the key.
func collisions(all []corev1.Node, nodes []string) (why []string) {
	for k := range all {
		if slices.Contains(nodes, all[k].Name) {
			if w := node.Foreign(nil, &all[k]); w != "" {
				why = append(why, w)
			}
		}
	}
	return why
}
