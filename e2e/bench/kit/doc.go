// Package kit is what the programs that measure drover against its peers are
// built on: how they begin and end ([Main], [Save]), the peers' programs
// ([Unpack]), and drover itself ([FindDrover]).
package kit
