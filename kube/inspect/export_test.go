package inspect

import (
	"drover/kube/client"
	"drover/kube/cluster"
	"drover/kube/token"
)

// Collisions is for tests.
var Collisions = collisions

// NodeClient returns the client that a node makes from its token and cluster-info.
func NodeClient(m token.Minter, info *cluster.Info, tok token.Token) (client.Interface, error) {
	i := &inspection{Minter: m}
	return i.nodeClient(info, tok)
}
