package tenants

import (
	"cmp"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"drover/internal/printable"
)

// maxSaid bounds the last line of a program, in bytes.
const maxSaid = 400

// secretLike are texts that may be a secret: the password of a URL, what follows the name of
// one, and long words of the alphabets of tokens and keys. Paths, host names and flags are not.
var secretLike = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`://[^/@\s]*@`), "://***@"},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+\S+`), "$1 ***"},
	{regexp.MustCompile(`(?i)(password|passwd|secret|token|api[-_]?key)(["']?\s*[=:]\s*)[^\s,;]+`), "$1$2***"},
	{regexp.MustCompile(`[A-Za-z0-9+_=-]*[0-9][A-Za-z0-9+_=-]*`), ""}, // by its length: see said
}

// minSecret is the length of the shortest word with a digit that is taken for a secret.
const minSecret = 32

// said returns the last line that a program wrote before it failed, without what may be a
// secret, or "".
func said(s *corev1.ContainerStatus) string {
	t := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated)
	if t == nil || t.ExitCode == 0 {
		return ""
	}
	line := ""
	for l := range strings.Lines(t.Message) {
		line = cmp.Or(strings.TrimSpace(l), line)
	}
	for _, s := range secretLike {
		line = s.re.ReplaceAllStringFunc(line, func(found string) string {
			switch {
			case s.with != "":
				return s.re.ReplaceAllString(found, s.with)
			case len(found) >= minSecret:
				return "***"
			}
			return found
		})
	}
	return printable.Line(line, maxSaid)
}

// detail returns why a program is not ready.
func detail(s *corev1.ContainerStatus) string {
	why := "starts"
	switch w, t := s.State.Waiting, s.State.Terminated; {
	case w != nil:
		why = cmp.Or(w.Message, w.Reason)
	case t != nil:
		why = t.Reason
	}
	line := said(s)
	if t := s.State.Terminated; line == "" && t != nil { // it ended well, or could not start
		why = cmp.Or(t.Message, why)
	}
	if line != "" {
		why = cmp.Or(why, "it ended") + "; its last line: " + line
	}
	return printable.Line(why, maxMessage)
}
