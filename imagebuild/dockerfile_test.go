package imagebuild_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDockerfile: what the node image is built from cannot be replaced by somebody else: images
// are named by digest, and keys of repositories by fingerprint.
func TestDockerfile(t *testing.T) {
	data, err := os.ReadFile("../Dockerfile.image")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	args, stages := map[string]string{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^ARG (\w+)=(\S*)$`).FindAllStringSubmatch(text, -1) {
		if _, again := args[m[1]]; !again {
			args[m[1]] = os.Expand(m[2], func(name string) string { return args[name] })
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)(?: AS (\S+))?$`).FindAllStringSubmatch(text, -1) {
		from := os.Expand(m[1], func(name string) string { return args[name] })
		if !stages[from] && !regexp.MustCompile(`@sha256:[0-9a-f]{64}$`).MatchString(from) {
			t.Errorf("FROM %s: %s is neither a stage nor an image by digest", m[1], from)
		}
		stages[m[2]] = true
	}
	if len(stages) < 5 {
		t.Errorf("got the stages %v", stages)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "curl ") && !strings.Contains(line, `curl -fsSL "$3"`) && !strings.Contains(line, "openssh-server") && !strings.HasPrefix(line, "#") {
			t.Errorf("fetched without a check: %s", line)
		}
	}
}
