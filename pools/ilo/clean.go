package ilo

import (
	"strings"
	"unicode/utf8"
)

// maxText bounds what a chassis may say. A full chassis of 180 nodes says
// 40 kB.
const maxText = 1 << 20

// line is a line of what a chassis said, without the noise of terminals.
type line struct {
	no      int    // in the text as it came, from 1
	text    []rune // columns are counted in characters: an asset tag may be UTF-8
	command string // what was typed behind a prompt; text is then empty
	prompt  bool   // it began with a prompt
}

func (l line) String() string { return string(l.text) }

func (l line) blank() bool { return strings.TrimSpace(string(l.text)) == "" }

// clean splits text into lines and takes off what is not of the chassis:
// carriage returns (the manager ends lines with CR CR LF in places), colours,
// the pager's question and how it is wiped, prompts.
func clean(text string) []line {
	text = asUTF8(text)
	text = withoutEscapes(text)
	var out []line
	raw := strings.Split(text, "\n")
	quoted := isQuoted(raw)
	for i, s := range raw {
		l := line{no: i + 1}
		if quoted {
			s = strings.TrimPrefix(strings.TrimPrefix(s, ">"), " ")
		}
		s = asSeen(s)
		if rest, ok := cutPrompt(s); ok {
			l.prompt, l.command = true, strings.TrimSpace(rest)
		} else if strings.HasPrefix(s, "show ") { // the echo of a command, without its prompt
			l.prompt, l.command = true, strings.TrimSpace(s)
		} else if !isPager(s) {
			l.text = []rune(strings.TrimRight(s, " "))
		}
		out = append(out, l)
	}
	return out
}

// isQuoted tells whether all lines begin as those of a quoted mail do.
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
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r == utf8.RuneError {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// withoutEscapes removes the control sequences of terminals (ECMA-48: CSI, then
// parameters, then a letter).
func withoutEscapes(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "\x1b")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		s = after
		if rest, ok := strings.CutPrefix(after, "["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' || r > '?' })
			if end < 0 {
				return b.String()
			}
			s = rest[end:]
			if r := rest[end]; r >= '@' && r <= '~' {
				s = rest[end+1:]
			}
		}
	}
}

// asSeen is what a terminal would show of a line: a carriage return writes it
// anew, a backspace takes one character back.
func asSeen(s string) string {
	s = strings.TrimRight(s, "\r")
	if i := strings.LastIndexByte(s, '\r'); i >= 0 {
		s = s[i+1:]
	}
	out := make([]rune, 0, len(s))
	for _, r := range s {
		switch {
		case r == '\b':
			out = out[:max(0, len(out)-1)]
		case r == '\t':
			for pad := true; pad || len(out)%8 != 0; pad = false {
				out = append(out, ' ')
			}
		case r == '\u00a0' || r == '\u2007' || r == '\u202f': // mail programs and web pages put them for blanks
			out = append(out, ' ')
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\ufeff': // controls, C1 too (a terminal takes U+009B for an escape)
		default:
			out = append(out, r)
		}
	}
	return string(out)
}

// isPager tells whether a line is the pager's question, "-- More --".
func isPager(s string) bool {
	return lower(strings.Trim(s, " -")) == "more" && strings.Contains(s, "-")
}

// cutPrompt cuts the prompt off a line: "hpiLO-> show node list", "MP> ", or
// the chassis' name before the arrow.
func cutPrompt(s string) (rest string, ok bool) {
	s = strings.TrimLeft(s, " ")
	i := strings.IndexByte(s, '>')
	if i < 1 || i > 66 {
		return "", false
	}
	name := strings.TrimSuffix(s[:i], "-")
	if name == "" || strings.ContainsFunc(name, notHostName) {
		return "", false
	}
	if rest = s[i+1:]; rest != "" && rest[0] != ' ' {
		return "", false
	}
	return rest, true
}

func notHostName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// lower is for comparing words: without case and without blanks around.
func lower(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
