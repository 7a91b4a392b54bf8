package server

import (
	"context"
	"errors"
	"os"

	"drover/internal/atomicfile"
	"drover/kube"
	"drover/pools"
	"drover/pools/resolve"
)

// maxReference bounds a content that settings refer to, in bytes, as that of a file in the
// config is.
const maxReference = 1 << 20

// references reads what the settings of nodes refer to, each time that a node asks.
type references struct {
	farm     func() *resolve.Farm
	clusters *kube.Clusters
}

func (r references) Read(ctx context.Context, ref pools.Reference) ([]byte, error) {
	if ref.FromFile != "" {
		return ReadFile(r.farm(), ref.FromFile)
	}
	return r.clusters.Secret(ctx, ref.FromSecret, maxReference)
}

// ReadFile returns the content of a file in the directory of the config file or below it.
// Symbolic links may lead to files there only. The errors have no paths of the server
// beside name.
func ReadFile(farm *resolve.Farm, name string) (content []byte, err error) {
	root, err := os.OpenRoot(farm.Path("."))
	if err != nil {
		return nil, errors.New("the directory of the config cannot be read")
	}
	defer root.Close()
	return atomicfile.ReadIn(root, name, maxReference)
}
