// Package stats is what the benchmarks against peers have in common: what a
// process has used, how busy the host was, what a comparison is worth, and what
// drover has to be.
//
// Peers are measured in turn, round by round, because a virtual machine is twice
// as fast in one minute as in the next. [Compare] takes the ratio of each round,
// which has little of that in it, and says between which bounds the median of
// such ratios is. A [Check] holds it against a limit.
//
// The package starts nothing and knows none of the peers.
package stats
