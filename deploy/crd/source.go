package crd

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is what the Go files of package pools say of its types.
type source struct {
	types  map[string]string   // comments by type
	fields map[string]string   // comments by Type.Field
	values map[string][]string // constants by type
}

// readSource reads the Go files of a directory.
func readSource(dir string) (*source, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s: no Go files (%w)", dir, err)
	}
	s := &source{map[string]string{}, map[string]string{}, map[string][]string{}}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				s.declaration(g)
			}
		}
	}
	return s, nil
}

func (s *source) declaration(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.types[spec.Name.Name] = sentence(g.Doc.Text())
			if t, ok := spec.Type.(*ast.StructType); ok {
				s.structure(spec.Name.Name, t)
			}
		case *ast.ValueSpec:
			t, ok := spec.Type.(*ast.Ident)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, _ := strconv.Unquote(lit.Value)
					s.values[t.Name] = append(s.values[t.Name], text)
				}
			}
		}
	}
}

func (s *source) structure(name string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		about := strings.TrimSpace(f.Doc.Text() + " " + f.Comment.Text())
		for _, n := range f.Names {
			s.fields[name+"."+n.Name] = sentence(strings.TrimPrefix(about, n.Name+" "))
		}
	}
}

// link is a link in a doc comment: [Plan.Serves].
var link = regexp.MustCompile(`\[([A-Za-z]+(?:\.[A-Za-z]+)*)\]`)

// sentence makes one line of a comment that begins with a capital.
func sentence(comment string) string {
	text := link.ReplaceAllString(strings.Join(strings.Fields(comment), " "), "$1")
	first, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return ""
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return string(unicode.ToUpper(first)) + text[n:]
}
