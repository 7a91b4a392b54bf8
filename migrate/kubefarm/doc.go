// Package kubefarm reads the values of kubefarm's Helm chart, of version 0.13.4 and
// before: node pools, tags, and what LTSP does on a node at boot.
//
// Tags keep their names. The tag all has what kubefarm sets for all nodes: its options,
// ltsp.config, and the settings of LTSP. Of LTSP's settings those with a counterpart in
// drover become it; shell code becomes scripts of stage pre-init, with the variables that
// LTSP has.
package kubefarm
