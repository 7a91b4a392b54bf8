// Package kit has the shared parts of the benchmark programs: their start and end ([Main],
// [Save]), the peers' programs ([Unpack]), and drover itself ([FindDrover]).
package kit
