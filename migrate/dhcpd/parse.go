package dhcpd

import (
	"path/filepath"
	"regexp"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// Bounds of a config.
const (
	maxStatements = 1 << 20
	maxDepth      = 50
	maxFiles      = 256
)

// statement is a statement of a config: words up to the semicolon, or up to a block.
type statement struct {
	at    pools.Origin
	words []string
	block []statement
	has   bool // it has a block
}

// text returns the words from the n-th on.
func (s statement) text(n int) string {
	if n >= len(s.words) {
		return ""
	}
	return strings.Join(s.words[n:], " ")
}

// word returns the n-th word, without quotes; "" if there is none.
func (s statement) word(n int) string {
	if n >= len(s.words) {
		return ""
	}
	return unquote(s.words[n])
}

// escape is an escaped character.
var escape = regexp.MustCompile(`(?s)\\(.)`)

// unquote returns a word without its quotes and escapes.
func unquote(word string) string {
	if len(word) < 2 || word[0] != '"' {
		return word
	}
	return escape.ReplaceAllString(word[1:len(word)-1], "$1")
}

// parser reads the statements of files.
type parser struct {
	read  func(path string) ([]byte, error)
	left  int // statements
	files int
}

// file reads a file, with the files that it includes.
func (p *parser) file(path string) ([]statement, error) {
	if p.files++; p.files > maxFiles {
		return nil, migrate.FormatError(migrate.At(path), "more than %d files", maxFiles)
	}
	data, err := p.read(path)
	if err != nil {
		return nil, err
	}
	t := &tokens{file: path, text: string(data), line: 1}
	return p.statements(t, 0)
}

// statements reads up to the end of a block, or of the file at depth 0.
func (p *parser) statements(t *tokens, depth int) (all []statement, err error) {
	if depth > maxDepth {
		return nil, migrate.FormatError(t.at(), "more than %d blocks in each other", maxDepth)
	}
	var s statement
	for {
		word, err := t.next()
		if err != nil {
			return nil, err
		}
		if len(s.words) == 0 {
			s.at = t.at()
		}
		switch word {
		case "":
			if depth > 0 || len(s.words) > 0 {
				return nil, migrate.FormatError(t.at(), "the file ends within a statement or a block")
			}
			return all, nil
		case "}":
			if depth == 0 || len(s.words) > 0 {
				return nil, migrate.FormatError(t.at(), "a } without its statement")
			}
			return all, nil
		case ";", "{":
			if s.has = word == "{"; s.has {
				if s.block, err = p.statements(t, depth+1); err != nil {
					return nil, err
				}
			}
			if all, err = p.finish(all, s); err != nil {
				return nil, err
			}
			s = statement{}
		default:
			s.words = append(s.words, word)
		}
	}
}

// finish adds a statement, or those of a file that it includes.
func (p *parser) finish(all []statement, s statement) ([]statement, error) {
	if p.left--; p.left < 0 {
		return nil, migrate.FormatError(s.at, "more than %d statements", maxStatements)
	}
	if len(s.words) == 0 && !s.has {
		return all, nil
	}
	if s.word(0) != "include" || len(s.words) != 2 {
		return append(all, s), nil
	}
	path := s.word(1)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(s.at.File), path)
	}
	more, err := p.file(path)
	if err != nil {
		s.words = []string{"include-failed", err.Error()}
		return append(all, s), nil
	}
	s.words[0] = "included"
	return append(append(all, s), more...), nil
}

// tokens are the words of a file.
type tokens struct {
	file string
	text string
	line int
}

func (t *tokens) at() pools.Origin { return pools.Origin{File: t.file, Line: t.line} }

// token is white space, a comment, a text with its quotes, { } ; , = ( ) alone, a run of other
// characters, or one that is no text.
var token = regexp.MustCompile(`(?s)^(?:\s+|#[^\n]*|"(?:\\.|[^"\\])*"|[{};,=()!~]|[^\s{};,=()!~"#\x00]+|.)`)

// next returns the next word; "" at the end.
func (t *tokens) next() (string, error) {
	for t.text != "" {
		word := token.FindString(t.text)
		t.text = t.text[len(word):]
		t.line += strings.Count(word, "\n")
		switch {
		case word == `"` || word == "\x00":
			return "", migrate.FormatError(t.at(), "a quote without its end, or no text")
		case word[0] != '#' && strings.TrimSpace(word) != "":
			return word, nil
		}
	}
	return "", nil
}
