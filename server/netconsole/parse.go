package netconsole

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"drover/internal/printable"
)

// The limits of a datagram.
const (
	maxDatagram = 8192 // bytes; longer ones are cut
	maxLines    = 64   // of one datagram; the rest is dropped
	maxText     = 512  // bytes of a line
)

// hexDigits are hexadecimal digits, in any case, with quotes and what does not print between them,
// also as the kernel writes that (\x00).
const hexDigits = `(?:[0-9A-Fa-f](?:\\x[0-9A-Fa-f]{2}|[^ -~]|["'\\])*)`

// secrets match what lines must not show: the nonce of a boot, which the kernel prints with its
// command line, and a bootstrap token, which kubeadm prints in some of its errors. A nonce has 64
// digits: so many are masked behind any name, though they can be a digest.
var secrets = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)(drover[._]nonce["']?\s*[=:]\s*["']?)` + hexDigits + `+`), "${1}…"},
	{regexp.MustCompile(hexDigits + `{64,}`), "…"},
	{regexp.MustCompile(`[a-z0-9]{6}\.[a-z0-9]{16}`), "[token]"},
}

var (
	laterFragment = regexp.MustCompile(`^[^;]*,ncfrag=[1-9]`)
	cutDigits     = regexp.MustCompile(`^(\[[^]]*\] )[0-9A-Fa-f]{4,}`)
)

// Parse returns the lines of a datagram, without what does not print and without secrets:
//
//   - netconsole as the kernel sends it: text, with or without a time in brackets;
//   - extended netconsole (Documentation/networking/netconsole.rst), with a header in front,
//     "6,416,1758426,-;text", of which the time is kept, and further properties in lines that
//     begin with a blank, which are dropped;
//   - syslog (RFC 3164 and 5424): the priority in angle brackets is dropped.
//
// Anything else is text, too.
func Parse(datagram []byte) (lines []string) {
	extended, first := false, true
	for part := range bytes.Lines(datagram[:min(len(datagram), maxDatagram)]) {
		text := string(bytes.TrimRight(part, "\r\n\x00"))
		if extended && strings.HasPrefix(text, " ") {
			continue
		}
		text = strings.ReplaceAll(text, "\x00", "")
		if rest, ok := cutHeader(text); ok {
			if first && laterFragment.MatchString(text) { // it may begin in the middle of a nonce
				rest = cutDigits.ReplaceAllString(rest, "${1}…")
			}
			text, extended = rest, true
		} else {
			text = cutPriority(text)
		}
		first = false
		for _, s := range secrets {
			text = s.pattern.ReplaceAllString(text, s.instead)
		}
		if text = printable.Line(text, maxText); text != "" {
			lines = append(lines, text)
		}
		if len(lines) == maxLines {
			break
		}
	}
	return lines
}

// cutPriority returns a line of syslog without its priority.
func cutPriority(text string) string {
	if rest, ok := strings.CutPrefix(text, "<"); ok {
		if number, rest, ok := strings.Cut(rest, ">"); ok {
			if n, err := strconv.ParseUint(number, 10, 8); err == nil && n < 24*8 {
				return rest
			}
		}
	}
	return text
}

// cutHeader returns a line of extended netconsole without its header, with the time as the
// kernel prints it. The header is level, number, microseconds and flags, behind the release of
// the kernel if that is asked for.
func cutHeader(text string) (rest string, ok bool) {
	header, rest, ok := strings.Cut(text, ";")
	if !ok {
		return text, false
	}
	fields := strings.Split(header, ",")
	for _, at := range []int{0, 1} {
		if len(fields) < at+4 {
			break
		}
		_, err := strconv.ParseUint(fields[at], 10, 16)
		if err == nil {
			_, err = strconv.ParseUint(fields[at+1], 10, 64)
		}
		var micros uint64
		if err == nil {
			micros, err = strconv.ParseUint(fields[at+2], 10, 64)
		}
		if flags := fields[at+3]; err == nil && (flags == "-" || flags == "c" || flags == "+") {
			return "[" + pad(strconv.FormatFloat(float64(micros)/1e6, 'f', 6, 64)) + "] " + rest, true
		}
	}
	return text, false
}

// pad returns a time in seconds in the width that the kernel prints it with.
func pad(seconds string) string { return strings.Repeat(" ", max(0, 12-len(seconds))) + seconds }
