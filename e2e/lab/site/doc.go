// Package site combines a rack, control planes and drover: everything that an operator
// has before the first machine is powered on.
//
//	built, err := site.Build(ctx, log)               // programs, node image, loaders
//	s, err := built.Open(ctx, site.Config{...})      // rack, a control plane for each cluster of the config, drover
//	defer s.Close()
//
// The config file decides about clusters, nodes and their settings. [Site.Expect] resolves
// a machine as drover does, so that a test or the demo expects what the file declares.
//
// What is built is kept between runs, what a run writes is made anew. The
// package installs nothing on the host but on request, with [Install].
package site
