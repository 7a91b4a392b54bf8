// Package config reads and checks the operator's file, and keeps the resulting farm
// in force.
//
// [Load] and [Parse] return a [resolve.Farm], or all mistakes at once as [mistake.Errors],
// each with its line and a remedy. [Live] is the farm of a running server: it reads
// the file again, and adds, changes and removes the nodes of the API. Each change
// is checked together with everything else, stored, and only then put in force.
//
// Package decode reads the file, and the bodies of the REST API by the same rules: JSON is
// YAML.
//
// The package does not know the effect of the values on a boot (package resolve does),
// where added nodes are stored, or which client changes them.
package config
