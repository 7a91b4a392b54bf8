// Package power has the commands of drover for chassis and management processors:
// import, chassis, power and audit.
//
// The commands chassis and audit ask a running server. Import and power also reach the
// hardware from the host that they run on, with the drivers of package
// [drover/hardware]. The package has flags and printing, and knows no protocol.
package power

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{newImportCommand(), newChassisCommand(), newPowerCommand(), newAuditCommand()}
}
