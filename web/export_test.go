package web

// What the tests of the parsers need.
var (
	ParseJSON  = parseJSON
	ParseNode  = parseNode
	MergePatch = mergePatch
	PatchNode  = patchNode
)
