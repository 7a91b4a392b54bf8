package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"drover/cmd/drover/cli/contexts"
)

// OnHost makes cmd, a command that reads files of the server's host, refuse to run while the
// operator's commands go to a server elsewhere: it would speak of the wrong host. The flags name
// the files, so each of them lets it run. The text instead says what to do from here.
func OnHost(cmd *cobra.Command, instead string, flags ...string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if slices.ContainsFunc(flags, cmd.Flags().Changed) {
			return run(cmd, args)
		}
		name, err := remote(cmd)
		if err == nil && name != "" {
			err = &Error{Usage, fmt.Errorf("%s reads files of the server's host, and your commands go to %s: run it there, or %s", cmd.CommandPath(), name, instead)}
		}
		if err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// remote returns the context or the URL that the operator's commands go to, if it is not of this host.
func remote(cmd *cobra.Command) (string, error) {
	flag := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return f.Value.String()
		}
		return ""
	}
	chosen := flag("context")
	if url := cmp.Or(flag("api"), os.Getenv("DROVER_API")); chosen == "" && url != "" {
		return elsewhere(url, url), nil
	}
	all, err := contexts.Load()
	if err != nil {
		return "", err
	}
	x, ok := all.Find(chosen)
	if !ok {
		if chosen != "" {
			return "", &Error{Usage, all.Unknown(chosen)}
		}
		return "", nil
	}
	return elsewhere(x.URL, "the context "+x.Name), nil
}

// elsewhere returns a name for the server at a URL, empty if it is of this host.
func elsewhere(url, name string) string {
	if isSocket(url) || isLoopback(url) {
		return ""
	}
	return name
}
