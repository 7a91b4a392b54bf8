// Package unitfile writes parts of systemd units. The server writes units into a node's config,
// and drover-init into its root file system.
package unitfile

import "strings"

// Quote quotes a word of ExecStart= (systemd.service(5), "Command lines").
func Quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(s) + `"`
}
