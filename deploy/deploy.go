// Package deploy holds the files that set drover up elsewhere, for the program
// to show and to apply.
package deploy

import _ "embed" // for the files

// RBAC is what drover may do in a tenant's cluster: rbac.yaml.
//
//go:embed rbac.yaml
var RBAC []byte
