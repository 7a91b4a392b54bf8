// Package site puts a rack, control planes and drover together: all that an
// operator has, before the first machine is switched on.
//
//	built, err := site.Build(ctx, log)               // programs, node image, loaders
//	s, err := built.Open(ctx, site.Config{...})      // rack, a control plane for each cluster of the config, drover
//	defer s.Close()
//
// The config file decides: which clusters there are, which nodes, what they
// get. [Site.Expect] asks the same question that drover asks, so that a test or
// a demo expects what the file says and not what its author remembers.
//
// What is built is kept between runs, what a run writes is made anew. The
// package installs nothing on the host but on request, with [Install].
package site
