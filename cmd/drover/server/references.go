package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"drover/pools"
	"drover/pools/kube"
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
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file (mode %s)", name, info.Mode())
	}
	content, err = io.ReadAll(io.LimitReader(f, maxReference+1))
	if err == nil && len(content) > maxReference {
		return nil, fmt.Errorf("%s: more than %d bytes", name, maxReference)
	}
	return content, err
}
