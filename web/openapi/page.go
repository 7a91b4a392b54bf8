package openapi

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"drover/web/answer"
	"drover/web/route"
)

// The paths of the document, and of the page that shows it.
const (
	JSONPath  = "/openapi.json"
	PagePath  = "/openapi"
	StylePath = "/openapi.css"
)

//go:embed assets
var assets embed.FS

// Handler returns the handler for the document of a table and for the page that shows it.
func Handler(log *slog.Logger, table []route.Route) http.Handler {
	document := Document(table)
	html := template.Must(template.ParseFS(assets, "assets/page.html"))
	serve := func(path string, h answer.Handler) (string, http.Handler) {
		return path, answer.By(log, answer.Methods{"GET": h})
	}
	mux := http.NewServeMux()
	mux.Handle(serve(JSONPath, func(w http.ResponseWriter, _ *http.Request) error {
		answer.JSON(w, http.StatusOK, document)
		return nil
	}))
	mux.Handle(serve(PagePath, func(w http.ResponseWriter, _ *http.Request) error {
		var b bytes.Buffer
		if err := html.Execute(&b, newPage(table)); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = b.WriteTo(w) // the client is gone
		return nil
	}))
	mux.Handle(serve(StylePath, func(w http.ResponseWriter, _ *http.Request) error {
		style, err := assets.ReadFile("assets/page.css")
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(style) // the client is gone
		return err
	}))
	return mux
}

// page is what the page shows.
type page struct {
	Groups []group
	Types  []typeView
}

// group is the routes below one path.
type group struct {
	Name   string
	Routes []routeView
}

type routeView struct {
	route.Route
	ID           string
	Parameters   []route.Parameter
	Body, Answer []word // empty: there is none
}

type typeView struct {
	Name   string
	Fields []field
}

type field struct {
	Name     string
	Type     []word
	Required bool
}

// word is a part of the name of a type. A link leads to a type of the page.
type word struct{ Text, Link string }

func newPage(table []route.Route) page {
	b, p := &builder{map[string]Schema{}}, page{}
	for i := range table {
		r := &table[i]
		name, _, _ := strings.Cut(strings.TrimPrefix(r.Path, "/api/v1/"), "/")
		name, _, _ = strings.Cut(name, ":")
		at := slices.IndexFunc(p.Groups, func(g group) bool { return g.Name == name })
		if at < 0 {
			at = len(p.Groups)
			p.Groups = append(p.Groups, group{Name: name})
		}
		v := routeView{Route: *r, ID: operationID(r), Parameters: r.Parameters()}
		if r.Body != nil {
			v.Body = words(b.request(reflect.TypeOf(r.Body), r.Patch))
		}
		if r.Answer != nil {
			v.Answer = words(b.schema(reflect.TypeOf(r.Answer)))
		}
		p.Groups[at].Routes = append(p.Groups[at].Routes, v)
	}
	b.schema(reflect.TypeFor[answer.Problem]())
	for _, name := range slices.Sorted(maps.Keys(b.components)) {
		p.Types = append(p.Types, newType(name, b.components[name]))
	}
	return p
}

func newType(name string, s Schema) typeView {
	t := typeView{Name: name}
	properties, _ := s["properties"].(map[string]Schema)
	required, _ := s["required"].([]string)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		t.Fields = append(t.Fields, field{key, words(properties[key]), slices.Contains(required, key)})
	}
	return t
}

// words returns a schema for people.
func words(s Schema) []word {
	if ref, ok := s["$ref"].(string); ok {
		name := ref[strings.LastIndex(ref, "/")+1:]
		return []word{{name, name}}
	}
	if items, ok := s["items"].(Schema); ok {
		return append([]word{{Text: "list of "}}, words(items)...)
	}
	if values, ok := s["additionalProperties"].(Schema); ok {
		return append([]word{{Text: "map of "}}, words(values)...)
	}
	if either, ok := s["anyOf"].([]Schema); ok && s["type"] == nil {
		var all []word
		for i, one := range either {
			if i > 0 {
				all = append(all, word{Text: " or "})
			}
			all = append(all, words(one)...)
		}
		return all
	}
	text := "any value"
	if s["const"] == "" {
		text = "an empty text"
	}
	if s["type"] != nil {
		text = strings.Trim(strings.ReplaceAll(fmt.Sprint(s["type"]), " ", " or "), "[]")
	}
	if format, ok := s["format"].(string); ok {
		text = format
	}
	if enum := reflect.ValueOf(s["enum"]); enum.IsValid() {
		text = "one of " + strings.Trim(fmt.Sprint(enum), "[]")
	}
	return []word{{Text: text}}
}
