package power

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"drover/internal/atomicfile"
	"drover/migrate"
	"drover/migrate/manifests"
)

// parseFormat checks the flags that decide what an import writes.
func (c *configFlags) parseFormat() error {
	switch c.format {
	case "config":
		if c.Options.Kubernetes != "" {
			return errors.New("--control-plane runs in an admin cluster: give --format objects")
		}
		c.Options.Namespace = ""
		return nil
	case "objects":
	default:
		return fmt.Errorf("--format %q: want config or objects", c.format)
	}
	switch {
	case c.Apply || c.Config != "":
		return errors.New("--format objects writes to --output, or to standard output: give neither --apply nor --config")
	case migrate.Label(c.Options.Namespace) != c.Options.Namespace || c.Options.Namespace == "":
		return fmt.Errorf("--namespace %q: want a name of a-z, 0-9 and '-'", c.Options.Namespace)
	case c.Options.Kubernetes != "" && !regexp.MustCompile(`^v1\.[0-9]+\.[0-9]+$`).MatchString(c.Options.Kubernetes):
		return fmt.Errorf("--control-plane %q: want a version of Kubernetes such as v1.37.1", c.Options.Kubernetes)
	}
	return nil
}

// runObjects runs the import, and writes objects.
func (c *configFlags) runObjects(cmd *cobra.Command) error {
	output := c.Output
	c.Output = "" // a file of objects is no config to compare with
	r, err := c.Run(cmd.Context())
	if err != nil {
		return importResult(r, err)
	}
	m, err := manifests.Convert(r.Config(), c.Options.Namespace, output)
	if err != nil {
		return importResult(r, err)
	}
	r.Changes = m.Changes
	for _, e := range m.Left {
		r.Notes = append(r.Notes, migrate.Note{Kind: migrate.LeftOut, Origin: e.Origin, Text: e.Msg + " (" + e.Hint + ")"})
		r.Partial = true
	}
	c.Output = output
	if err := c.print(cmd, r); err != nil {
		return importResult(r, err)
	}
	return importResult(r, c.writeObjects(cmd, m))
}

// writeObjects writes objects to the output file, or to standard output. A file that would
// stay the same is not written.
func (c *configFlags) writeObjects(cmd *cobra.Command, m *manifests.Result) error {
	switch {
	case c.DryRun:
		return nil
	case c.Output == "":
		_, err := cmd.OutOrStdout().Write(m.Text)
		return err
	case !m.Changed():
		return nil
	}
	return atomicfile.Rewrite(c.Output, m.Text, 0o600) // it may hold the hash of a password
}
