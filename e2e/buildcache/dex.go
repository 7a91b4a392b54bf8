package buildcache

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// Dex builds Dex, a provider of OpenID Connect, and returns its path. The first time takes two
// to four minutes on two cores.
func Dex(ctx context.Context, log io.Writer) (file string, err error) {
	log = share(log)
	b := goBuild{
		module:   "e2e/dex",
		programs: []program{{"dex", "github.com/dexidp/dex/cmd/dex"}},
		stamp:    func(map[string]string) ([]string, error) { return nil, nil },
	}
	p, err := b.part(ctx, "dex", log)
	if err != nil {
		return "", fmt.Errorf("dex: %w", err)
	}
	dir, err := p.path(ctx, log)
	return filepath.Join(dir, "dex"), err
}
