// Package manifests renders the objects of a hosted tenant: [Plane.Front] and
// [Plane.Pods] for the admin cluster, [Plane.Bootstrap] and [Plane.Addons] for the
// tenant itself.
//
// The texts are YAML, made from the templates beside this file. Every value that a
// person chose is written as JSON, which is YAML, so that no value can add a field. The
// same [Plane] gives the same text each time.
//
// The package only renders. It knows neither clusters nor keys, and calls nothing.
package manifests
