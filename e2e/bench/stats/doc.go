// Package stats has the measurements that the benchmarks against peers share: the processor
// time and memory of a process, the load of the host, ratios with their confidence, and
// checks of limits.
//
// Peers are measured in turn, round by round, because a virtual machine can be twice as
// fast in one minute as in the next. [Compare] takes the ratio of each round, which depends
// little on that, and returns the median of the ratios with its bounds. A [Check] compares
// it with a limit.
//
// The package starts nothing and knows none of the peers.
package stats
