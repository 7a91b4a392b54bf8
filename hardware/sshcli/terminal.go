package sshcli

import "strings"

// Visible returns a line as a terminal would show it: without control sequences,
// overwritten by carriage returns and backspaces, with tabs expanded.
func Visible(line string) string { return overwritten(withoutEscapes(line)) }

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

// overwritten applies carriage returns, which begin the line anew, and
// backspaces, which remove a character.
func overwritten(s string) string {
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
		case r == '\u00a0' || r == '\u2007' || r == '\u202f': // mail programs and web pages write them for blanks
			out = append(out, ' ')
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\ufeff': // controls, C1 too (a terminal takes U+009B for an escape)
		default:
			out = append(out, r)
		}
	}
	return string(out)
}

// IsPager reports whether a line is the prompt of a pager, "-- More --".
func IsPager(s string) bool {
	return strings.EqualFold(strings.Trim(s, " -"), "more") && strings.Contains(s, "-")
}

// CutPrompt removes the prompt from a line such as "hpiLO-> show node list". The name
// before the > or -> may be any host name. ok is false for a line without a prompt.
func CutPrompt(s string) (rest string, ok bool) {
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
