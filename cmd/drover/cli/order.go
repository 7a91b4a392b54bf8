package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Order is the order of a list, from the flag --sort: a name, reversed with a minus before it,
// as the API's parameter sort has it.
type Order struct {
	by    string
	names []string
}

// Flag adds --sort to a command, with the default and the names. The default may have a minus;
// without one it is a name, too.
func (o *Order) Flag(cmd *cobra.Command, standard string, names ...string) {
	o.names = names
	if !strings.HasPrefix(standard, "-") {
		o.names = append([]string{standard}, names...)
	}
	cmd.Flags().StringVar(&o.by, "sort", standard, strings.Join(o.names, "|")+", reversed with a minus before it")
	var words []string
	for _, name := range o.names {
		words = append(words, name, "-"+name)
	}
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// Parse returns the name, and whether the order is reversed.
func (o *Order) Parse() (name string, reversed bool, err error) {
	name, reversed = strings.CutPrefix(o.by, "-")
	if !slices.Contains(o.names, name) {
		return "", false, &Error{Usage, fmt.Errorf("--sort %q: want one of %s, or one of them after a minus", o.by, strings.Join(o.names, ", "))}
	}
	return name, reversed, nil
}

// Query returns the order as the API's parameter has it.
func (o *Order) Query() (string, error) {
	_, _, err := o.Parse()
	return o.by, err
}
