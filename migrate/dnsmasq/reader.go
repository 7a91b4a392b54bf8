package dnsmasq

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// Bounds of what a config includes.
const (
	maxFiles = 256
	maxLine  = 64 << 10 // bytes
)

// Reader reads the config of one dnsmasq, in as many files as it has, and fills a farm.
type Reader struct {
	// Pool is the pool of the hosts; default: that of the farm.
	Pool string
	// Tags are tags that all clients of this dnsmasq have.
	Tags []string
	// Keep are tags that machines keep even if no option needs them.
	Keep []string
	// Authoritative is that of the server, as if dhcp-authoritative was in its files.
	Authoritative bool

	farm    *migrate.Farm
	readers map[string]func(directive)
	files   map[string]bool
	ranges  []dhcpRange
	hosts   []host
	options []dhcpOption
	ifs     []tagIf
	ignores []ignored
	conds   []condition // those of options
	macs    []macTag
	shares  map[string]clients // with a tag
	sends   []sending
	used    []pools.Match      // of pools and nodes
	sent    map[string]clients // with tags that depend on what a client sends
	ignored bool               // machines that the config does not name are ignored
	serves  []directive        // interface
	without []string           // interfaces that have no DHCP
	always  bool               // answers are broadcast
	scope6  migrate.Scope      // options of DHCPv6
}

// NewReader returns a reader that fills a farm.
func NewReader(f *migrate.Farm) *Reader {
	r := &Reader{farm: f, files: map[string]bool{}, shares: map[string]clients{}, sent: map[string]clients{}}
	r.readers = r.table()
	return r
}

// directive is an option of dnsmasq with its values, separated at the commas.
type directive struct {
	at     pools.Origin
	key    string
	fields []string
}

// readConf reads a file of options, and the files that it includes.
func (r *Reader) readConf(path string) error {
	return r.eachLine(path, false, func(d directive) error {
		switch d.key {
		case "conf-file", "conf-dir", "dhcp-hostsfile", "dhcp-optsfile", "dhcp-hostsdir", "dhcp-optsdir":
			return r.include(path, d)
		}
		r.Directive(d.at, d.key, d.fields)
		return nil
	})
}

// readValues reads a file whose lines are values of one option: dhcp-host for a
// dhcp-hostsfile, dhcp-option for a dhcp-optsfile.
func (r *Reader) readValues(path, key string) error {
	return r.eachLine(path, true, func(d directive) error {
		d.at.Path = key
		r.Directive(d.at, key, d.fields)
		return nil
	})
}

// eachLine calls each for the lines of a file that hold something. plain is for files whose
// lines are values.
func (r *Reader) eachLine(path string, plain bool, each func(directive) error) error {
	if r.files[path] {
		return nil // dnsmasq reads each file once
	}
	if r.files[path] = true; len(r.files) > maxFiles {
		return migrate.FormatError(pools.Origin{File: path}, "more than %d files", maxFiles)
	}
	data, err := migrate.ReadFile(path)
	if err != nil {
		return err
	}
	return r.parse(path, string(data), plain, func(d directive) error {
		r.farm.Source(d.at, strings.Join(d.fields, ","))
		return each(d)
	})
}

// parse calls each for the lines of a text that hold something.
func (r *Reader) parse(file, text string, plain bool, each func(directive) error) error {
	if strings.ContainsRune(text, 0) {
		return migrate.FormatError(pools.Origin{File: file}, "it is no text")
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		at := pools.Origin{File: file, Line: n}
		if len(line) > maxLine {
			return migrate.FormatError(at, "a line of more than %d bytes", maxLine)
		}
		words, err := splitLine(line, plain)
		if err != nil {
			r.farm.Unknown(at, "%v", err)
			continue
		}
		if len(words) == 0 {
			continue
		}
		d := directive{at: at, fields: words}
		if !plain {
			d.key, d.fields = words[0], words[1:]
			d.at.Path = d.key
		}
		if err := each(d); err != nil {
			return err
		}
	}
	return nil
}

// splitLine splits a line into the name of the option and its values. Quotes hide commas
// and comments; # begins a comment at the begin of a word. A plain line has values only.
func splitLine(line string, plain bool) (words []string, err error) {
	line = strings.TrimRight(line, "\r\n")
	begun, quoted, closed := plain, false, false // the values have begun; within quotes; the word had quotes
	var word []byte
	end := func() {
		if !closed {
			word = bytes.TrimSpace(word)
		}
		words, word, closed = append(words, string(word)), nil, false
	}
scan:
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\' && i+1 < len(line):
			i++
			word = append(word, escaped(line[i]))
		case c == '"':
			if quoted = !quoted; quoted && len(bytes.TrimSpace(word)) == 0 {
				word = nil
			}
			closed = true
		case quoted:
			word = append(word, c)
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			break scan
		case c == '=' && !begun:
			begun = true
			end()
		case c == ',' && begun:
			end()
		case closed && (c == ' ' || c == '\t'): // behind the quotes
		default:
			word = append(word, c)
		}
	}
	if quoted {
		return nil, errors.New("a quote without its end")
	}
	if len(words) > 0 || closed || len(bytes.TrimSpace(word)) > 0 {
		end()
	}
	return words, nil
}

// escaped returns the character of an escape sequence.
func escaped(c byte) byte {
	if i := strings.IndexByte("tnbre", c); i >= 0 {
		return "\t\n\b\r\x1b"[i]
	}
	return c
}

// include reads the files of an option that names some.
func (r *Reader) include(from string, d directive) error {
	if len(d.fields) == 0 || d.fields[0] == "" {
		return nil
	}
	path := d.fields[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(from), path)
	}
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = directory(path, d.fields[1:]); err != nil {
			return err
		}
	}
	for _, file := range files {
		err := r.includeFile(file, d.key)
		if errors.Is(err, fs.ErrNotExist) {
			r.farm.Unknown(d.at, "%s is not on this host (copy it here, or name it with --dhcp-hosts or --dhcp-opts)", path)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.at.Position(), err)
		}
		r.farm.Itself(d.at, "%s is read", filepath.Base(file))
	}
	return nil
}

func (r *Reader) includeFile(file, key string) error {
	switch {
	case strings.HasPrefix(key, "dhcp-hosts"):
		return r.readValues(file, "dhcp-host")
	case strings.HasPrefix(key, "dhcp-opts"):
		return r.readValues(file, "dhcp-option")
	}
	return r.readConf(file)
}

// directory returns the files of a directory that dnsmasq reads: all but hidden ones and
// backups; with "*.conf" those of that ending, with ".bak" all but these.
func directory(dir string, endings []string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") {
			continue
		}
		ends := func(prefix string) (some, ending bool) { // an ending of the option, with * or without
			for _, e := range endings {
				suffix, star := strings.CutPrefix(e, "*")
				some = some || star == (prefix == "*") && e != ""
				ending = ending || star == (prefix == "*") && e != "" && strings.HasSuffix(name, suffix)
			}
			return some, ending
		}
		only, listed := ends("*")
		if _, not := ends(""); !not && (!only || listed) {
			files = append(files, filepath.Join(dir, name))
		}
	}
	slices.Sort(files)
	return files[:min(len(files), maxFiles)], nil
}

// Directive reads an option with its values.
func (r *Reader) Directive(at pools.Origin, key string, fields []string) {
	at.Path = cmp.Or(at.Path, key)
	d := directive{at, key, fields}
	switch read, ok := r.readers[key]; {
	case ok:
		read(d)
	case slices.Contains(strings.Fields(dnsOptions), key):
		r.farm.Lost(at, "DNS is no matter of drover: keep a DNS server for it (dnsmasq without dhcp-range)")
	case slices.Contains(strings.Fields(hostOptions), key):
		r.farm.Lost(at, "it is about the program dnsmasq, or its files and logs")
	default:
		r.farm.Unknown(at, "an option that this import does not know")
		if strings.HasPrefix(key, "dhcp-ignore") {
			r.farm.Close(at, key)
		}
	}
}
