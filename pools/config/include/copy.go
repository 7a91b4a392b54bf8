package include

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"drover/pools"
)

// MaxCopy bounds a copy, in bytes.
const MaxCopy = maxSize + 1<<20

// header is the begin of the first line of a copy, before the path of the operator's file.
// A server with another file must not start from it. The line ends with the names and sizes
// of the included files, whose contents follow that of the file.
const header = "# The last content in force, kept by drover serve, of "

// included is an included file in the first line of a copy.
type included struct {
	File  string `json:"file"`
	Bytes int    `json:"bytes"`
}

// Copy returns the whole text as one file.
func (t *Text) Copy() []byte {
	b := bytes.NewBuffer(firstLine(t.File))
	if t.Rollback > 0 {
		fmt.Fprintf(b, "%s%d", rollback, t.Rollback)
	}
	var list []included
	for _, p := range t.Included {
		list = append(list, included{p.File, len(p.Content)})
	}
	if len(list) > 0 {
		names, _ := json.Marshal(list) // of strings and numbers
		fmt.Fprintf(b, " with %s", names)
	}
	b.WriteByte('\n')
	b.Write(t.Main)
	for _, p := range t.Included {
		b.WriteString(p.Content)
	}
	return b.Bytes()
}

// rollback comes before the number of a rollback in the first line.
const rollback = " rollback "

func firstLine(file string) []byte {
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	return fmt.Appendf(nil, "%s%q", header, file)
}

// OfCopy returns the text of a copy; nil if it is that of another file.
func OfCopy(file string, data []byte) (*Text, error) {
	first, content, _ := bytes.Cut(data, []byte("\n"))
	names, ok := bytes.CutPrefix(first, firstLine(file))
	if !ok {
		return nil, nil
	}
	t := &Text{File: file, Main: content, From: Given}
	if number, ok := bytes.CutPrefix(names, []byte(rollback)); ok {
		end := len(number) - len(bytes.TrimLeft(number, "0123456789"))
		var err error
		t.Rollback, err = strconv.Atoi(string(number[:end]))
		if names = number[end:]; err != nil || t.Rollback < 1 {
			return nil, errors.New("its first line names no rollback")
		}
	}
	if len(names) == 0 {
		return t, nil
	}
	var list []included
	names, ok = bytes.CutPrefix(names, []byte(" with "))
	if !ok || json.Unmarshal(names, &list) != nil || len(list) > maxFiles {
		return nil, errors.New("its first line does not name the included files")
	}
	at := len(content)
	for _, f := range list {
		if f.Bytes < 0 || f.Bytes > at {
			return nil, errors.New("it is shorter than its first line says")
		}
		at -= f.Bytes
	}
	t.Main, content = content[:at], content[at:]
	for _, f := range list {
		t.Included = append(t.Included, pools.ConfigPart{File: f.File, Content: string(content[:f.Bytes])})
		content = content[f.Bytes:]
	}
	return t, nil
}
