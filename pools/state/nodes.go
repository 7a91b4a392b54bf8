package state

import (
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"drover/pools"
)

// Nodes keeps the nodes added over the API. It implements [config.NodeStore].
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

// ChangeNodes stores nodes under their names, and removes those of other names,
// in one transaction. It is durable when ChangeNodes returns.
func (n *Nodes) ChangeNodes(put []pools.PoolNode, remove []string) error {
	var ops []op
	for _, node := range put {
		value, err := json.Marshal(node)
		if err != nil {
			return fmt.Errorf("node %q: %w", node.Name, err)
		}
		ops = append(ops, op{bucketNodes, []byte(node.Name), value})
	}
	for _, name := range remove {
		ops = append(ops, op{bucket: bucketNodes, key: []byte(name)})
	}
	if len(ops) == 0 {
		return nil
	}
	return n.store.enqueue(ops...).wait()
}
