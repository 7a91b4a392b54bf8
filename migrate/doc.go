// Package migrate turns the configs of other servers into a config of drover.
//
// A reader, one package below this one for each format, fills a [Farm]: networks, ranges,
// machines and tags, as the other config has them. Farm.Finish makes the config of them,
// and keeps a [Note] for each option: where it was taken over, why it was not, and the
// nearest way. An [Import] compares the config with what is there already, and writes it
// as YAML with comments, or the nodes to a running server.
//
// Nothing is dropped silently: what a reader does not understand is a note with its file
// and line. A note that an option was taken is checked against the config that is written, and
// each leaf of the input is in the config or in the report. Nothing becomes more open: a range
// with a rule that drover does not have is left out. Inputs are bounded, and files are data: nothing of them is run.
//
// The package does not know the formats, flags, exit codes, or how a server stores nodes.
package migrate
