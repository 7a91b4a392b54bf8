// Sbom writes the software bill of materials of Go programs to standard output, as
// CycloneDX: the modules that each was built from, as the Go tool recorded them in the
// program itself.
//
//	go run ./deploy/sbom PROGRAM...
package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, programs []string) error {
	if len(programs) == 0 {
		return errors.New("no program named; usage: sbom PROGRAM")
	}
	bom := cdx.NewBOM()
	components, dependencies := map[string]cdx.Component{}, []cdx.Dependency{}
	for _, path := range programs {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: not a Go program: %w", path, err)
		}
		program := cdx.Component{
			Type: cdx.ComponentTypeApplication, BOMRef: info.Path, Name: filepath.Base(path), Version: info.Main.Version,
		}
		if bom.Metadata == nil {
			bom.Metadata = &cdx.Metadata{Component: &program}
		} else {
			components[program.BOMRef] = program
		}
		refs := []string{addModule(components, "std", strings.TrimPrefix(info.GoVersion, "go"), "")}
		for _, m := range info.Deps {
			for m.Replace != nil {
				m = m.Replace
			}
			refs = append(refs, addModule(components, m.Path, m.Version, m.Sum))
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: program.BOMRef, Dependencies: &refs})
	}
	all := make([]cdx.Component, 0, len(components))
	for _, c := range components {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b cdx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	bom.Components, bom.Dependencies = &all, &dependencies
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// addModule adds a module, and returns the reference to it. Its hash is that of go.sum.
func addModule(components map[string]cdx.Component, path, version, sum string) string {
	ref := "pkg:golang/" + path + "@" + version
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: ref, PackageURL: ref, Name: path, Version: version}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: sum}}
	}
	components[ref] = c
	return ref
}
