package buildcache

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// Helm builds helm, and returns its path. The first time takes two to four minutes on two
// cores: less where Kubernetes was built before.
func Helm(ctx context.Context, log io.Writer) (program string, err error) {
	log = share(log)
	p, err := helm(ctx, log)
	if err != nil {
		return "", fmt.Errorf("helm: %w", err)
	}
	dir, err := p.path(ctx, log)
	return filepath.Join(dir, "helm"), err
}

func helm(ctx context.Context, log io.Writer) (part, error) {
	const module = "helm.sh/helm/v4"
	b := goBuild{
		module:   "e2e/helm",
		programs: []program{{"helm", module + "/cmd/helm"}},
		stamp: func(version map[string]string) ([]string, error) {
			return []string{module + "/internal/version.version=" + version[module]}, nil
		},
	}
	return b.part(ctx, "helm", log)
}
