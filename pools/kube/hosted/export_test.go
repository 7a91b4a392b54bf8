package hosted

// Unreachable returns the reason why a version cannot follow another.
var Unreachable = unreachable
