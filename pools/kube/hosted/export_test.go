package hosted

// Unreachable returns the reason why a version cannot follow another.
var Unreachable = unreachable

// Unassigned returns why an endpoint may not lead to its Service, or "".
var Unassigned = unassigned
