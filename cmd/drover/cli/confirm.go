package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Confirm asks the operator a question on standard error, and returns an error unless the
// answer on standard input is yes. There is no question if yes is set, by the flag -y.
func Confirm(cmd *cobra.Command, yes bool, question string) error {
	if yes {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	fmt.Fprintln(cmd.ErrOrStderr())
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	if err != nil {
		return &Error{Usage, errors.New("nothing is done: there was no answer (-y says yes)")}
	}
	return errors.New("nothing is done")
}

// YesFlag adds the flag -y, for [Confirm].
func YesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do it without a question")
}
