package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli"
	"drover/pools"
)

// build is the version, and what the Go tool recorded of the build.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"` // of the commit
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: pools.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built from",
		Long: `Version prints the version of this program, the commit and its date, and the Go
release that compiled it. A build outside of a git checkout knows no commit.`,
		Example: "  drover version\n  drover version -o json",
		Args:    cobra.NoArgs,
	}
	cli.Show(cmd, "text", func(context.Context, []string) (build, error) {
		info, _ := debug.ReadBuildInfo()
		return buildOf(info), nil
	}, printBuild)
	return cmd
}

func printBuild(w io.Writer, b build) error {
	commit := cli.OrDash(b.Commit)
	if b.Modified {
		commit += ", with changes"
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "version\t%s\ncommit\t%s\ndate\t%s\ngo\t%s, %s\n", b.Version, commit, cli.OrDash(b.Date), b.Go, b.Platform)
	return tw.Flush()
}
