package include

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"drover/internal/atomicfile"
)

// Watch is the files of a config as they were when they were read.
type Watch struct {
	file     string
	patterns []string
	version  string
}

func newWatch(file string) Watch { return Watch{file: file, version: atomicfile.Version(file)} }

// add adds the files of patterns, before they are read.
func (w *Watch) add(patterns []string) {
	w.patterns = patterns
	w.version += w.included()
}

// Changed reports whether one of the files has changed since, came or went. It reads none.
func (w *Watch) Changed() bool { return atomicfile.Version(w.file)+w.included() != w.version }

// Folders returns the directories of the files.
func (w *Watch) Folders() (all []string) {
	all = append(all, filepath.Dir(w.file))
	for _, p := range w.patterns {
		if folder := filepath.Dir(join(w.file, p)); !slices.Contains(all, folder) {
			all = append(all, folder)
		}
	}
	return all
}

// included returns a text that changes with the included files.
func (w *Watch) included() string {
	var b strings.Builder
	for _, p := range w.patterns {
		d, err := open(w.file, p)
		if err != nil {
			continue // it is a mistake in the file
		}
		names, err := d.names()
		d.Close()
		if err != nil {
			fmt.Fprintln(&b, p, err)
		}
		for _, name := range names[:min(len(names), maxFiles+1)] {
			b.WriteString(atomicfile.Version(join(w.file, name)))
		}
	}
	return b.String()
}
