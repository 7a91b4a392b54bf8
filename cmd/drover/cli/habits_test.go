package cli_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drover/cmd/drover/cli"
)

// TestHabits: a word of another tool is told as drover's, and is not run.
func TestHabits(t *testing.T) {
	for line, want := range map[string]string{
		"get": "drover node list or drover node show", "ls": "drover node list", "get nodes": "drover node list or drover node show",
		"describe node m1": "drover node show", "get leases": "drover lease list", "node delete m1": "drover node rm", "lease delete 10.0.0.1": "drover lease release",
		"get node/m1": "drover node list or drover node show", "-x get": "", "nonsense": "", "node nonsense": "", "node show get extra": "",
	} {
		root := &cobra.Command{Use: "drover"}
		for noun, verbs := range map[string][]string{"node": {"list", "show", "rm"}, "lease": {"list", "release"}} {
			c := &cobra.Command{Use: noun}
			for _, v := range verbs {
				c.AddCommand(&cobra.Command{Use: v, Args: cobra.MaximumNArgs(1), Run: func(*cobra.Command, []string) {}})
			}
			root.AddCommand(cli.Group(c))
		}
		var stderr strings.Builder
		code := cli.Execute(t.Context(), root, strings.Fields(line), io.Discard, &stderr)
		_, said, _ := strings.Cut(strings.SplitN(stderr.String(), "\n", 2)[0], "drover says: ")
		if code != cli.Usage || said != want {
			t.Errorf("%s: exit %d, %q, want %q", line, code, stderr.String(), want)
		}
	}
}

func TestDurationFlag(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "0": 0, "": -1, "d": -1, "1.5d": -1, "-1d": -1, "1d-2h": -1, "7 d": -1, "99999999999d": -1, "1d2d": -1} {
		var d time.Duration
		f := pflag.NewFlagSet("x", pflag.ContinueOnError)
		cli.DurationFlag(f, &d, "ttl", time.Hour, "time")
		err := f.Parse([]string{"--ttl=" + text})
		if (err != nil) != (want < 0) || err == nil && d != want {
			t.Errorf("%q: got %s, %v", text, d, err)
		}
		if err != nil && d != time.Hour {
			t.Errorf("%q: the default is gone", text)
		}
	}
}
