package buildcache

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// flannel returns the part with flanneld.
func flannel(ctx context.Context, log io.Writer) (part, error) {
	const module = "github.com/flannel-io/flannel"
	b := goBuild{
		module:   "e2e/flannel",
		programs: []program{{"flanneld", "."}},
		recipe:   strings.Join(keptBackends, " "),
		stamp: func(version map[string]string) ([]string, error) {
			return []string{module + "/pkg/version.Version=" + version[module]}, nil
		},
		overlay: func(ctx context.Context, dir, temp string) (map[string]string, error) {
			return flannelMain(ctx, dir, temp, module)
		},
	}
	return b.part(ctx, "flannel", log)
}

// flannelCNI returns the part with flannel's CNI plugin, which passes flanneld's network
// to the plugin bridge.
func flannelCNI(ctx context.Context, log io.Writer) (part, error) {
	const module = "github.com/containernetworking/plugins"
	b := goBuild{
		module:   "e2e/flannel/cni",
		programs: []program{{"flannel", module + "/plugins/meta/flannel"}},
		stamp: func(version map[string]string) ([]string, error) {
			return []string{module + "/pkg/utils/buildversion.BuildVersion=" + version[module]}, nil
		},
	}
	return b.part(ctx, "flannelcni", log)
}

// keptBackends are the backends of flannel that are built. Others need the libraries of
// clouds, one of which is not available as a Go module, or programs in C.
var keptBackends = []string{"hostgw", "vxlan"}

// flannelMain adds flannel's main.go, without the imports of other backends, to the
// module that pins flannel's version.
func flannelMain(ctx context.Context, dir, temp, module string) (map[string]string, error) {
	said, err := goOutput(ctx, dir, "mod", "download", "-json", module)
	if err != nil {
		return nil, err
	}
	var source struct{ Dir string }
	if err := json.Unmarshal([]byte(said), &source); err != nil {
		return nil, fmt.Errorf("go mod download: %w", err)
	}
	upstream := filepath.Join(source.Dir, "main.go")
	content, err := os.ReadFile(upstream)
	if err != nil {
		return nil, err
	}
	text, kept := dropImports(string(content), module+"/pkg/backend/", keptBackends)
	if kept != len(keptBackends) {
		return nil, fmt.Errorf("%s imports %d of the backends %q: has it changed?", upstream, kept, keptBackends)
	}
	file := filepath.Join(temp, "flannel-main.go")
	return map[string]string{filepath.Join(dir, "main.go"): file}, os.WriteFile(file, []byte(text), 0o600)
}

// dropImports removes the blank imports below prefix from a Go source, except those in
// keep. It returns the number of those.
func dropImports(source, prefix string, keep []string) (text string, kept int) {
	var b strings.Builder
	for line := range strings.Lines(source) {
		imported, ok := strings.CutPrefix(strings.TrimSpace(line), `_ "`+prefix)
		switch {
		case !ok:
		case slices.Contains(keep, strings.TrimSuffix(imported, `"`)):
			kept++
		default:
			continue
		}
		b.WriteString(line)
	}
	return b.String(), kept
}
