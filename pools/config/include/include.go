// Package include makes one config of the operator's file and of the files that it
// includes, and keeps the text of all of them together.
//
//	t, err := include.Read("drover.yaml")
//	errs := t.Decode(&checked)
//
// An included file has lists of subnets, clusters, pools and chassis, which come behind
// those that are there, and tags. It neither includes others nor has settings of the server.
//
// The package does not know what the values mean.
package include

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"drover/internal/atomicfile"
	"drover/pools"
)

// Bounds of a config.
const (
	// maxSize bounds all of its files together, in bytes. 10 000 machines need 2 MB. To
	// decode YAML takes some forty times its size in memory.
	maxSize = 4 << 20

	maxFiles   = 256    // that are included
	maxEntries = 10_000 // of a directory in which a pattern is looked for
)

// From is where the included files of a [Text] are.
type From int

// The places of included files.
const (
	disk    From = iota // beside the config file
	Given               // in the text
	Nowhere             // they are a mistake
	InForce             // in the text, of which the patterns choose
)

// Text is what a config is made from.
type Text struct {
	File     string             // the operator's file, as it was named
	Main     []byte             // its content
	Included []pools.ConfigPart // the included files, in their order
	From     From
	// Rollback is the number in the history of a text that a rollback has made active; 0: of none.
	Rollback int

	watch Watch
}

// Read reads the operator's file. The files that it includes are read by [Text.Decode].
// After an error the text is good for [Text.Watch].
func Read(file string) (t *Text, err error) {
	t = &Text{File: file, watch: newWatch(file)}
	t.Main, err = atomicfile.Read(file, maxSize)
	return t, err
}

// Watch returns the files of a text that was read from the disk.
func (t *Text) Watch() *Watch { return &t.watch }

// Digest returns a SHA-256 of the text, hexadecimal: that of the file, when it includes no
// others.
func (t *Text) Digest() string {
	sum := sha256.New()
	sum.Write(t.Main)
	for _, p := range t.Included {
		fmt.Fprintf(sum, "\n%q %d\n%s", p.File, len(p.Content), p.Content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// name returns the name of an included file in errors.
func (t *Text) name(file string) string { return join(t.File, file) }

// join returns the path of a file that a config file names, as seen from the working
// directory.
func join(config, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(config), file)
}
