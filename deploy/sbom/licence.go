package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// text is the text of a licence or a notice.
type text struct {
	file string // in the module
	main bool   // in its root: it is the module's own, and not that of code that the module took over
	text string
}

// id returns the SPDX identifier of a licence; "" for a text that is none, such as a notice.
func (t text) id() string {
	words := strings.Join(strings.Fields(t.text), " ")
	for _, known := range []struct{ id, words string }{
		{"Apache-2.0", "Apache License Version 2.0"},
		{"MPL-2.0", "Mozilla Public License"},
		{"BSD-3-Clause", "Neither the name"},
		{"BSD-3-Clause", "contributors may be used to endorse"},
		{"BSD-2-Clause", "Redistribution and use in source and binary forms"},
		{"MIT", "Permission is hereby granted, free of charge"},
		{"ISC", "copyright notice and this permission notice appear in all copies"},
		{"0BSD", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
		{"Unlicense", "This is free and unencumbered software"},
	} {
		if strings.Contains(words, known.words) {
			return known.id
		}
	}
	return ""
}

// names matches the files that have licences and notices.
var names = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// sources are the folders that have the licences.
type sources struct {
	root    string            // drover's tree
	modules map[string]string // by path; std: GOROOT
}

// find finds the folders of modules in the module cache. Those of a program are there, since it
// was compiled.
func find(modules []string) (sources, error) {
	env, err := goTool("env", "GOMOD", "GOROOT")
	if err != nil {
		return sources{}, err
	}
	mod, goroot, _ := strings.Cut(env, "\n")
	s := sources{root: filepath.Dir(mod), modules: map[string]string{"std": strings.TrimSpace(goroot)}}
	if len(modules) == 0 {
		return s, nil
	}
	list, err := goTool(append([]string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}, modules...)...)
	for line := range strings.Lines(list) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		s.modules[path] = dir
	}
	return s, err
}

// goTool returns what the Go tool prints.
func goTool(args ...string) (string, error) {
	out, err := exec.Command("go", args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("go %s: %w: %s", args[0], err, exit.Stderr)
	}
	return string(out), err
}

// licences returns the licences of a module, or of std, and those of code that it took over.
func (s sources) licences(module string) ([]text, error) {
	dir := s.modules[module]
	if dir == "" {
		return nil, fmt.Errorf("module %s is not in Go's module cache: run go mod download", module)
	}
	all, err := texts(dir, module != "std")
	if err == nil && !slices.ContainsFunc(all, func(t text) bool { return t.main && t.id() != "" }) {
		err = fmt.Errorf("module %s: no licence in %s is one that deploy/sbom/licence.go knows", module, dir)
	}
	return all, err
}

// texts returns the licences and notices in a folder, with those of all folders below if deep.
func texts(dir string, deep bool) (all []text, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (!deep || slices.Contains([]string{"testdata", "vendor", ".github", "node_modules"}, d.Name())):
			return fs.SkipDir
		case !d.Type().IsRegular() || !names.MatchString(d.Name()) || filepath.Ext(d.Name()) == ".go":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		all = append(all, text{filepath.ToSlash(rel), filepath.Dir(path) == dir, strings.TrimSpace(string(content))})
		return err
	})
	return all, err
}

// server is the program that has htmx in it.
const server = "drover/cmd/drover"

// embedded returns htmx, whose files are in drover's own tree.
func (s sources) embedded() (part, error) {
	dir := filepath.Join(s.root, "web", "page", "asset", "htmx")
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return part{}, err
	}
	version := regexp.MustCompile(`htmx\.org@([0-9][0-9.]*[0-9])`).FindStringSubmatch(string(readme))
	if version == nil {
		return part{}, fmt.Errorf("%s: the README has no version", dir)
	}
	all, err := texts(dir, false)
	return part{name: "htmx.org", version: version[1], url: packageURL("npm", "htmx.org", version[1]), texts: all}, err
}

// writeNotices writes the texts of the licences of all parts: each part with those that it has,
// and each text once.
func writeNotices(w io.Writer, programs []program) error {
	var b strings.Builder
	b.WriteString("Third-party software in the programs of drover, and its licences.\n")
	seen, first := map[string]bool{}, map[string]string{}
	for _, p := range programs {
		for _, x := range p.parts {
			if seen[x.url] {
				continue
			}
			seen[x.url] = true
			fmt.Fprintf(&b, "\n%s\n%s %s\n", strings.Repeat("=", 80), x.name, x.version)
			for _, t := range x.texts {
				if before := first[t.text]; before != "" {
					fmt.Fprintf(&b, "\n%s: the same text as that of %s\n", t.file, before)
					continue
				}
				first[t.text] = x.name + ", " + t.file
				fmt.Fprintf(&b, "\n--- %s\n\n%s\n", t.file, t.text)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
