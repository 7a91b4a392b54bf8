package moonshot

import (
	"strings"
	"unicode/utf8"

	"drover/hardware/sshcli"
)

// maxShown bounds text of a chassis in an error, in bytes.
const maxShown = 80

// line is a line of a chassis' output, without the additions of terminals.
type line struct {
	no      int    // line number in the original text, from 1
	text    []rune // columns are counted in characters: an asset tag may be UTF-8
	command string // the command behind a prompt; text is then empty
	prompt  bool   // it began with a prompt
}

func (l line) String() string { return string(l.text) }

func (l line) blank() bool { return strings.TrimSpace(string(l.text)) == "" }

// clean splits text into lines and removes the additions of terminals: carriage returns
// (some lines of the manager end with CR CR LF), colours, the prompt of the pager and its
// erasure, and command prompts.
func clean(text string) []line {
	var out []line
	raw := strings.Split(asUTF8(text), "\n")
	quoted := isQuoted(raw)
	for i, s := range raw {
		l := line{no: i + 1}
		if quoted {
			s = strings.TrimPrefix(strings.TrimPrefix(s, ">"), " ")
		}
		s = sshcli.Visible(s)
		if rest, ok := sshcli.CutPrompt(s); ok {
			l.prompt, l.command = true, strings.TrimSpace(rest)
		} else if strings.HasPrefix(s, "show ") { // the echo of a command, without its prompt
			l.prompt, l.command = true, strings.TrimSpace(s)
		} else if !sshcli.IsPager(s) {
			l.text = []rune(strings.TrimRight(s, " "))
		}
		out = append(out, l)
	}
	return out
}

// isQuoted reports whether all lines begin as those of a quoted mail do.
func isQuoted(lines []string) bool {
	some := false
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if some = true; !strings.HasPrefix(l, ">") {
			return false
		}
	}
	return some
}

// asUTF8 replaces each byte that is not UTF-8 by one question mark: a tag in
// Latin-1 keeps its width.
func asUTF8(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}

// lower returns a word for comparing: in lower case, without blanks around it.
func lower(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
