package hosted

// Unreachable returns the reason why a version cannot follow another.
var Unreachable = unreachable

// Older reports whether a version is before another.
var Older = older

// Unassigned returns why an endpoint may not lead to its Service, or "".
var Unassigned = unassigned
