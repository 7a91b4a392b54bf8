// Package nodefile reads and writes nodes as files: YAML or JSON with a list nodes, whose entries
// are whole nodes, and tables (CSV), whose columns are some of their fields.
//
// It does not know the nodes of a server.
package nodefile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"drover/pools"
	"drover/pools/config/decode"
	"drover/pools/config/mistake"
)

// Entry is a node of a file.
type Entry struct {
	pools.Origin
	Node pools.PoolNode

	columns []string // the fields that a table has; nil: all
}

// Onto returns the node that an entry makes of the one there is; nil: there is none. A table
// changes the fields that it has a column for.
func (e *Entry) Onto(old *pools.PoolNode) pools.PoolNode {
	if e.columns == nil || old == nil {
		return e.Node
	}
	n := *old
	for _, column := range e.columns {
		copyField[column](&n, &e.Node)
	}
	return n
}

// list is a file of YAML or JSON.
type list struct {
	Nodes []pools.PoolNode `json:"nodes"`
}

// IsTable reports whether a file is a table, by its name.
func IsTable(file string) bool {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".csv", ".tsv":
		return true
	}
	return false
}

// IsList reports whether a file is YAML or JSON with a list nodes. The error says what is not YAML.
func IsList(file string, data []byte) (bool, error) {
	docs, err := decode.Documents(file, data)
	if err != nil || len(docs) == 0 {
		return false, err
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(docs[0], &keys) != nil {
		return false, nil
	}
	_, nodes := keys["nodes"]
	_, object := keys["kind"]
	return nodes && !object, nil
}

// Read reads the nodes of a file: a table if its name says so, else a list. Its errors are
// [mistake.Errors], and those of a file that is no table.
func Read(file string, data []byte) (entries []Entry, err error) {
	if IsTable(file) {
		if entries, err = readTable(file, data); err != nil {
			return nil, err
		}
		return entries, unique(entries).Err()
	}
	var l list
	lines, errs := decode.YAML(file, data, &l)
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	for i, n := range l.Nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		e := Entry{Origin: pools.Origin{File: file, Line: lines[path], Path: path}, Node: n}
		if n.Name == "" || n.Pool == "" {
			errs = append(errs, &mistake.Error{Origin: e.Origin, Msg: fmt.Sprintf("node %q has no name or no pool", n.Name), Hint: "write {pool: web, name: m1, macs: [...], ip: ...}"})
		}
		entries = append(entries, e)
	}
	return entries, append(errs, unique(entries)...).Err()
}

// unique returns an error for each name and MAC that two entries have.
func unique(entries []Entry) (errs mistake.Errors) {
	names, macs := map[string]pools.Origin{}, map[pools.MAC]pools.Origin{}
	for _, e := range entries {
		if first, twice := names[e.Node.Name]; twice && e.Node.Name != "" {
			errs = append(errs, &mistake.Error{Origin: e.Origin, Msg: fmt.Sprintf("node %q is there twice, first in line %d", e.Node.Name, first.Line), Hint: "leave one out"})
			continue
		}
		names[e.Node.Name] = e.Origin
		for _, m := range e.Node.MACs {
			if first, twice := macs[m]; twice {
				errs = append(errs, &mistake.Error{Origin: e.Origin, Msg: fmt.Sprintf("node %q: the MAC %s is there twice, first in line %d", e.Node.Name, m, first.Line), Hint: "a card is in one machine"})
			}
			macs[m] = e.Origin
		}
	}
	return errs
}

// Pools returns the pools that the entries name.
func Pools(entries []Entry) map[string]bool {
	named := map[string]bool{}
	for _, e := range entries {
		named[e.Node.Pool] = true
	}
	return named
}

// columnNames returns the names of the columns of tables.
func columnNames() []string { return slices.Sorted(maps.Keys(copyField)) }
