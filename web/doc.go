// Package web is the listener for people and their tools: the REST API (web/api), the
// page (web/page), the metrics and the health checks. It is apart from the listener
// of nodes (package httpboot), on an address that nodes need not reach.
//
//	GET /healthz  the process answers
//	GET /readyz   503 and a list while anything is not ready
//	GET /metrics  the answer of [Server].Metrics
//	/api/         the REST API
//	/             the page, its forms and its session
//
// Everything but the health checks needs the API token, or for reading the session of
// a browser (web/auth). Handlers return errors, which web/answer answers.
//
// The package does not know what is read or changed, or what is measured.
package web
