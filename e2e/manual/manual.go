// Package manual reads the manual, README.md and docs/*.md, for the tests that run
// its commands.
//
// The manual has one convention. A fenced block marked sh holds commands, one to a
// line, that the reader types as they are: no prompt, no placeholder, no output. A
// comment begins with "# " at the start of the line or after two spaces, and a
// backslash at the end continues a line. Every other fenced block names its own
// language, such as yaml or text. There are no indented code blocks. [Read] refuses a
// page that breaks the convention, so that no command escapes the tests.
//
// [Host] is a host to type the commands on: it has the real one's files, and drops
// what is written to /etc, /usr and /var. The package does not know drover.
package manual

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Command is a command of the manual.
type Command struct {
	Page    string // "docs/install.md"
	Section string // the heading above it
	Line    int
	Text    string // without its comment, on one line
}

// String returns the place of the command.
func (c Command) String() string { return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, c.Text) }

// languages are those of fenced blocks that hold no commands.
func languages() []string { return []string{"yaml", "text", "json", "ipxe", "toml"} }

// Pages returns the pages of the manual below the top of the source tree.
func Pages(root string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	pages := []string{"README.md"}
	for _, f := range found {
		pages = append(pages, "docs/"+filepath.Base(f))
	}
	return pages, err
}

// Read returns the commands of a page in their order.
func Read(root, page string) ([]Command, error) {
	b, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, err
	}
	r := reader{page: page}
	for line := range strings.Lines(string(b)) {
		r.number++
		r.read(strings.TrimRight(line, "\n"))
	}
	if r.fence != "" {
		r.mistake("a fenced block has no end")
	}
	return r.commands, errors.Join(r.errs...)
}

// reader reads a page line by line.
type reader struct {
	page, section string
	number        int
	fence         string // the open block's language, empty outside of blocks
	open          string // a command that a backslash continues
	commands      []Command
	errs          []error
}

func (r *reader) mistake(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.page, r.number, fmt.Sprintf(format, args...)))
}

func (r *reader) read(line string) {
	switch language, fenced := strings.CutPrefix(strings.TrimLeft(line, " "), "```"); {
	case fenced && r.fence != "":
		r.fence = ""
	case fenced && language != "sh" && !slices.Contains(languages(), language):
		r.mistake("a fenced block in %q (want sh for commands, or one of %v)", language, languages())
		r.fence = "text"
	case fenced:
		r.fence = language
	case r.fence == "sh":
		r.command(line)
	case r.fence != "":
	case strings.HasPrefix(line, "    "):
		r.mistake("an indented block (want a fenced one)")
	case strings.HasPrefix(line, "#"):
		r.section = strings.TrimSpace(strings.TrimLeft(line, "#"))
	}
}

func (r *reader) command(line string) {
	text := strings.TrimSpace(line)
	if strings.HasPrefix(text, "# ") {
		return
	}
	text, _, _ = strings.Cut(text, "  # ")
	text = strings.TrimSpace(text)
	if r.open != "" {
		text = r.open + " " + text
	}
	before, continued := strings.CutSuffix(text, "\\")
	r.open = ""
	switch {
	case continued:
		r.open = strings.TrimSpace(before)
	case text == "":
	case strings.HasPrefix(text, "$ "), strings.Contains(text, "…"), strings.Contains(text, "..."):
		r.mistake("%q has a prompt or an omission (want a command as it is typed)", text)
	default:
		r.commands = append(r.commands, Command{r.page, r.section, r.number, text})
	}
}

// Block returns the first fenced block of a language in a page.
func Block(root, page, language string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return "", err
	}
	_, after, found := strings.Cut(string(b), "```"+language+"\n")
	text, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		return "", fmt.Errorf("%s: no block in %s", page, language)
	}
	return text, nil
}
