package state

import (
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"drover/pools"
)

// Nodes keeps the nodes added over the API. It implements [pools.NodeStore].
type Nodes struct {
	store *Store
}

// Nodes returns all of them, by name.
func (n *Nodes) Nodes() ([]pools.PoolNode, error) {
	var all []pools.PoolNode
	err := n.store.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketNodes).ForEach(func(key, value []byte) error {
			var node pools.PoolNode
			if err := json.Unmarshal(value, &node); err != nil {
				return fmt.Errorf("%s: node %q: %w", n.store.db.Path(), key, err)
			}
			all = append(all, node)
			return nil
		})
	})
	return all, err
}

// PutNode stores node under its name. It is durable when PutNode returns.
func (n *Nodes) PutNode(node pools.PoolNode) error {
	value, err := json.Marshal(node)
	if err != nil {
		return fmt.Errorf("node %q: %w", node.Name, err)
	}
	return n.store.enqueue(op{bucketNodes, []byte(node.Name), value}).wait()
}

// DeleteNode removes the node of that name, durably; one that is not there is
// no error.
func (n *Nodes) DeleteNode(name string) error {
	return n.store.enqueue(op{bucket: bucketNodes, key: []byte(name)}).wait()
}
