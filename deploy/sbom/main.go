// Sbom writes the software bill of materials of Go programs to standard output, as
// CycloneDX: the modules that each was built from, as the Go tool recorded them in the
// program itself, with their licences, and what is embedded in it besides.
//
//	go run ./deploy/sbom PROGRAM...
//	go run ./deploy/sbom -notices PROGRAM...
//
// With -notices it writes the texts of these licences instead, which have to accompany the
// programs. Both read the licences from Go's module cache and GOROOT, and those of drover's own
// tree; so it runs in the tree.
package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"drover/pools"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, args []string) error {
	write := writeBOM
	if len(args) > 0 && args[0] == "-notices" {
		write, args = writeNotices, args[1:]
	}
	if len(args) == 0 {
		return errors.New("no program named; usage: sbom [-notices] PROGRAM")
	}
	var programs []program
	var modules []string
	for _, path := range args {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: not a Go program: %w", path, err)
		}
		programs = append(programs, program{name: filepath.Base(path), info: info})
		for _, m := range info.Deps {
			modules = append(modules, m.Path)
		}
	}
	from, err := find(modules)
	if err != nil {
		return err
	}
	for i := range programs {
		if err := programs[i].read(from); err != nil {
			return err
		}
	}
	return write(w, programs)
}

// program is a program of drover, with all that was linked into it.
type program struct {
	name  string
	info  *debug.BuildInfo
	parts []part
}

// part is a module, Go's standard library, or a file that is embedded.
type part struct {
	name, version string
	sum           string // of go.sum; may be empty
	url           string // the package URL
	texts         []text // its licences
}

// read finds the parts of a program.
func (p *program) read(from sources) error {
	std, err := from.licences("std")
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(p.info.GoVersion, "go")
	p.parts = []part{{name: "std", version: version, url: packageURL("golang", "std", version), texts: std}}
	for _, m := range p.info.Deps {
		texts, err := from.licences(m.Path)
		if err != nil {
			return err
		}
		for m.Replace != nil {
			m = m.Replace
		}
		p.parts = append(p.parts, part{name: m.Path, version: m.Version, sum: m.Sum, url: packageURL("golang", m.Path, m.Version), texts: texts})
	}
	if p.info.Path != server {
		return nil
	}
	htmx, err := from.embedded()
	p.parts = append(p.parts, htmx)
	return err
}

// packageURL is a package URL (purl). Some versions have a "+", which stands for a blank there.
func packageURL(typ, name, version string) string {
	return "pkg:" + typ + "/" + name + "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
}

// writeBOM writes the bill of materials.
func writeBOM(w io.Writer, programs []program) error {
	bom := cdx.NewBOM()
	components, dependencies := map[string]cdx.Component{}, []cdx.Dependency{}
	for i, p := range programs {
		ref := packageURL("golang", p.info.Main.Path, pools.Version) + "#" + strings.TrimPrefix(p.info.Path, p.info.Main.Path+"/")
		c := cdx.Component{
			Type: cdx.ComponentTypeApplication, BOMRef: ref, PackageURL: ref, Name: p.name, Version: pools.Version, Licenses: choices([]string{"Apache-2.0"}),
		}
		if i == 0 {
			bom.Metadata = &cdx.Metadata{Component: &c}
		} else {
			components[ref] = c
		}
		refs := []string{}
		for _, x := range p.parts {
			components[x.url] = x.component()
			refs = append(refs, x.url)
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: ref, Dependencies: &refs})
	}
	all := slices.SortedFunc(maps.Values(components), func(a, b cdx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	bom.Components, bom.Dependencies = &all, &dependencies
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// component returns a part for the bill. Its hash is that of go.sum.
func (p part) component() cdx.Component {
	var ids []string
	for _, t := range p.texts {
		if t.main {
			ids = append(ids, t.id())
		}
	}
	slices.Sort(ids)
	c := cdx.Component{
		Type: cdx.ComponentTypeLibrary, BOMRef: p.url, PackageURL: p.url, Name: p.name, Version: p.version,
		Licenses: choices(slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })),
	}
	if p.sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: p.sum}}
	}
	return c
}

// choices returns licences by their SPDX identifiers; nil for none.
func choices(ids []string) *cdx.Licenses {
	if len(ids) == 0 {
		return nil
	}
	all := cdx.Licenses{}
	for _, id := range ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}
