package main

var (
	ParseOptions  = parseOptions
	ParsePerfdhcp = parsePerfdhcp
	Search        = search
	Judge         = judge
	KeaBest       = keaBest
	Carried       = Step.carried
)

// Print prints a report.
var Print = (*Report).print

// Add adds a round.
var Add = (*Report).add

// Failure is the error of a run.
var Failure = (*Report).failure

// PathOf is the page that a person has open.
var PathOf = pathOf
