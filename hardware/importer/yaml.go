package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"gopkg.in/yaml.v3"

	"drover/pools"
	"drover/pools/config/decode"
)

// poolNodes is a pool of the config file, reduced to its name and nodes.
type poolNodes struct {
	Name  string       `json:"name"`
	Nodes []pools.Node `json:"nodes"`
}

// writeNodes writes nodes in the form of the config file, each on one line.
func writeNodes(w io.Writer, nodes []pools.NodeInfo) error {
	all := []*poolNodes{} // [] rather than null
	for _, n := range nodes {
		i := slices.IndexFunc(all, func(p *poolNodes) bool { return p.Name == n.Pool })
		if i < 0 {
			i = len(all)
			all = append(all, &poolNodes{Name: n.Pool})
		}
		all[i].Nodes = append(all[i].Nodes, n.Node)
	}
	top, err := decode.Document(map[string]any{"pools": all})
	if err != nil {
		return err
	}
	for _, pool := range top.Content[0].Content[1].Content {
		for _, node := range pool.Content[3].Content { // Content: key name, value, key nodes, value
			decode.NodeLine(node)
		}
	}
	return decode.Write(w, top)
}

// readNodes reads a file of writeNodes. A file that does not exist has no nodes.
func readNodes(path string) ([]pools.NodeInfo, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var v any
	var doc struct {
		Pools []poolNodes `json:"pools"`
	}
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = decode.JSON(text, &doc)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: that is not a list of nodes that import wrote: %w (compare with a whole config by --config)", path, err)
	}
	var nodes []pools.NodeInfo
	for _, p := range doc.Pools {
		for _, n := range p.Nodes {
			nodes = append(nodes, pools.NodeInfo{PoolNode: pools.PoolNode{Pool: p.Name, Node: n}})
		}
	}
	return nodes, nil
}
