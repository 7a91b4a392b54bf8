// Package web is the listener for operators and their tools: the REST API (web/api),
// the page (web/page), the metrics and the health checks. The listener for nodes is
// another one (package httpboot): nodes need not reach this one.
//
//	GET /healthz  the process answers
//	GET /readyz   503 and a list while the farm cannot be served
//	GET /metrics  the answer of [Server].Metrics
//	/api/         the REST API
//	/openapi.json its OpenAPI document
//	/             the page, its forms and its session
//
// Every request except the health checks and the document needs a token, whose role says
// what it may do (web/auth). The session of a browser is enough for reading, but not for
// secrets. Handlers return errors, and web/answer turns them into answers.
//
// Clients without the token share few connections, so that a flood of them leaves the
// others an answer. A request must name this server in its Host, which scripts of other
// sites cannot do.
//
// The package does not know the data of the API or the metrics.
package web
