package migrate

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"drover/pools"
)

// ReadJSON reads a JSON file with the comments and the includes of Kea.
func ReadJSON(path string) (*Value, error) {
	in := &included{left: maxFile}
	if err := in.read(path, 0); err != nil {
		return nil, err
	}
	documents, err := parse(path, in.text.Bytes(), in.lines)
	return one(path, documents, err)
}

// included is the text of a file with those that it includes, on lines of their own.
type included struct {
	text  bytes.Buffer
	lines []pools.Origin // of each line of the text
	left  int            // bytes
}

// directive is <?include "file"?>, which Kea replaces by the text of the file.
var directive = regexp.MustCompile(`<\?include\s+"([^"\n]*)"\s*\?>`)

func (in *included) read(path string, depth int) error {
	data, err := ReadFile(path)
	if err != nil {
		return err
	}
	if in.left -= len(data); in.left < 0 || depth > 10 {
		return FormatError(At(path), "more than %d bytes with what it includes, or more than 10 files in each other", maxFile)
	}
	n := 0
	for line := range strings.Lines(string(withoutComments(data))) {
		n++
		for {
			at := directive.FindStringSubmatchIndex(line)
			if at == nil {
				break
			}
			in.add(line[:at[0]], pools.Origin{File: path, Line: n})
			file := line[at[2]:at[3]]
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(path), file)
			}
			if err := in.read(file, depth+1); err != nil {
				return fmt.Errorf("%s:%d: %w", path, n, err)
			}
			line = line[at[1]:]
		}
		in.add(line, pools.Origin{File: path, Line: n})
	}
	return nil
}

func (in *included) add(line string, at pools.Origin) {
	in.text.WriteString(strings.TrimRight(line, "\r\n"))
	in.text.WriteByte('\n')
	in.lines = append(in.lines, at)
}

// jsonComment is a text of JSON, a tab, or a comment of C or of a shell.
var jsonComment = regexp.MustCompile(`"(?:\\.|[^"\\])*"?|\t|#[^\n]*|//[^\n]*|/\*(?s:.*?)(?:\*/|$)`)

// withoutComments replaces comments and tabs by blanks, so that lines stay as they are.
func withoutComments(data []byte) []byte {
	return jsonComment.ReplaceAllFunc(data, func(b []byte) []byte {
		if b[0] == '"' {
			return b
		}
		return bytes.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, b)
	})
}
