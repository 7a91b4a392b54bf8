// Package openapi makes the OpenAPI 3.1 document of the REST API, from its table of routes
// and the types of their bodies and answers.
//
// The package does not know the routes.
package openapi

import (
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"drover/web/answer"
	"drover/web/route"
)

// Document returns the document of a table.
func Document(table []route.Route) map[string]any {
	b := &builder{map[string]Schema{}}
	problem := b.schema(reflect.TypeFor[answer.Problem]())
	paths := map[string]map[string]any{}
	for i := range table {
		r := &table[i]
		if paths[r.Path] == nil {
			paths[r.Path] = map[string]any{}
		}
		paths[r.Path][strings.ToLower(r.Method)] = b.operation(r)
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "drover", "version": "1",
			"description": "The REST API of drover. Errors are problem details (RFC 9457).",
			"license":     map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []any{map[string]any{"url": "/", "description": "The server that this document is of"}},
		"paths":    paths,
		"security": []any{map[string]any{"token": []string{}}},
		"components": map[string]any{
			"schemas":         b.components,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
			"responses": map[string]any{
				"Problem": map[string]any{"description": "An error", "content": content(answer.ProblemType, problem)},
			},
		},
	}
}

func content(kind string, s Schema) map[string]any {
	return map[string]any{kind: map[string]any{"schema": s}}
}

// operation returns the description of a route.
func (b *builder) operation(r *route.Route) map[string]any {
	op := map[string]any{
		"operationId": operationID(r), "summary": r.Summary, "description": about(r),
		"parameters": b.parameters(r), "responses": b.responses(r), "x-role": r.Role,
	}
	if r.Body != nil {
		s := b.request(reflect.TypeOf(r.Body), r.Patch)
		body := content("application/json", s)
		if r.Patch {
			body["application/merge-patch+json"] = body["application/json"] // both are taken
		}
		op["requestBody"] = map[string]any{"required": true, "content": body}
	}
	return op
}

func about(r *route.Route) string {
	text := "Needs the role " + string(r.Role) + "."
	if r.Secret {
		text += " The session of a browser is not enough."
	}
	return text
}

var inPath = regexp.MustCompile(`\{([a-z]+)\}`)

// operationID returns the name of a route for programs: getNodesName.
func operationID(r *route.Route) string {
	var b strings.Builder
	b.WriteString(strings.ToLower(r.Method))
	for _, word := range strings.FieldsFunc(strings.TrimPrefix(r.Path, "/api/v1"), func(c rune) bool { return strings.ContainsRune("/{}:-", c) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func (b *builder) parameters(r *route.Route) []any {
	all := []any{}
	for _, name := range inPath.FindAllStringSubmatch(r.Path, -1) {
		all = append(all, map[string]any{"name": name[1], "in": "path", "required": true, "schema": Schema{"type": "string"}})
	}
	for _, p := range r.Parameters() {
		all = append(all, map[string]any{"name": p.Name, "in": "query", "description": p.About, "schema": parameter(&p)})
	}
	if r.Conditional {
		all = append(all, map[string]any{
			"name": "If-Match", "in": "header", "schema": Schema{"type": "string"},
			"description": "the ETag that the node must have",
		})
	}
	return all
}

func parameter(p *route.Parameter) Schema {
	switch p.Kind {
	case route.Bool:
		return Schema{"type": "boolean"}
	case route.Count:
		return Schema{"type": "integer", "minimum": 1, "maximum": p.Max}
	case route.Time:
		return Schema{"type": "string", "format": "date-time"}
	case route.Word:
		return Schema{"type": "string", "enum": p.Words}
	}
	return Schema{"type": "string"}
}

// usual are the statuses of errors that any request can have.
var usual = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest,
	http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
}

func (b *builder) responses(r *route.Route) map[string]any {
	all := map[string]any{}
	for _, code := range append(slices.Clip(usual), r.Errors...) {
		all[strconv.Itoa(code)] = Schema{"$ref": "#/components/responses/Problem"}
	}
	if r.Body != nil {
		for _, code := range []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType} {
			all[strconv.Itoa(code)] = Schema{"$ref": "#/components/responses/Problem"}
		}
	}
	good := map[string]any{"description": http.StatusText(r.Status)}
	if r.Answer != nil {
		kinds := content("application/json", b.schema(reflect.TypeOf(r.Answer)))
		if r.Watch {
			kinds["text/event-stream"] = map[string]any{"schema": Schema{"type": "string", "description": "With watch=true"}}
		}
		good["content"] = kinds
	}
	headers := map[string]any{}
	text := map[string]any{"schema": Schema{"type": "string"}}
	if r.Conditional && r.Answer != nil {
		headers["ETag"] = text
	}
	for _, p := range r.Query {
		if p.Name == "cursor" {
			headers["Link"] = map[string]any{"schema": Schema{"type": "string"}, "description": "the next page (RFC 8288)"}
		}
	}
	if r.Status == http.StatusCreated || r.Status == http.StatusAccepted && r.Answer != nil {
		dry := map[string]any{"description": "The answer with dryRun=true", "content": good["content"]}
		all[strconv.Itoa(http.StatusOK)] = dry
		headers["Location"] = text
	}
	if len(headers) > 0 {
		good["headers"] = headers
	}
	all[strconv.Itoa(r.Status)] = good
	return all
}
