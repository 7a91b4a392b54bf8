package api

import (
	"net/http"
	"slices"

	"drover/web/auth"
	"drover/web/route"
)

// Routes returns the table of the API: all of its paths, with their parameters, bodies,
// answers and roles.
func (a *API) Routes() []route.Route {
	return slices.Concat(
		a.nodeRoutes(), a.farmRoutes(), a.hardwareRoutes(), a.bootRoutes(), a.addressRoutes(), a.tokenRoutes(), a.imageRoutes(), a.serverRoutes(), a.historyRoutes(), a.retiredRoutes(),
	)
}

// Handler returns the handler for all requests below /api/. It expects each with its
// client: see [auth.Guard.API].
func (a *API) Handler() http.Handler { return route.Handler(a.Log, a.Routes()) }

// client returns the client of a request.
func client(r *http.Request) auth.Client {
	c, _ := auth.ClientOf(r) // the table has checked it
	return c
}

// Statuses of routes.
var (
	noSuch   = []int{http.StatusNotFound}
	noChange = []int{http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed}
)
