// Package crontab reads lines of crontab(5) with a user, as /etc/cron.d has them, and
// translates them into calendar events of systemd.time(7).
//
//	e, err := crontab.Parse("*/5 * * * * root /usr/local/bin/check")
//	e.Calendar // "*-*-* *:00,05,10,...:00"
//
// It does not know who runs the command.
package crontab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drover/pools"
)

// Entry is a command and its times.
type Entry struct {
	Boot     bool     // once, at boot
	Calendar []string // calendar events of systemd, of which each is a time of the command; none for Boot
	User     string
	Command  string // for /bin/sh -c
}

const example = `write "minute hour day month weekday user command", such as "*/5 * * * * root /usr/local/bin/check"`

// nicknames are the forms of the five fields with a name.
var nicknames = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// Parse reads one line. Its errors have hints.
func Parse(line string) (Entry, error) {
	var e Entry
	if strings.ContainsAny(line, "\r\n\x00") {
		return e, pools.Hint("write one line for each command", "the line of cron has a line break")
	}
	first, rest := cut(line)
	fields := []string{first}
	switch {
	case first == "@reboot":
		e.Boot = true
	case strings.HasPrefix(first, "@"):
		times, ok := nicknames[first]
		if !ok {
			return e, pools.Hint("@reboot, @hourly, @daily, @weekly, @monthly or @yearly", "unknown time %q", first)
		}
		fields = strings.Fields(times)
	default:
		for len(fields) < 5 {
			first, rest = cut(rest)
			fields = append(fields, first)
		}
	}
	e.User, rest = cut(rest)
	if e.User == "" || rest == "" {
		return e, pools.Hint(example, "%q is not a line of cron", line)
	}
	if !isUser(e.User) {
		return e, pools.Hint(example, "%q is not the name of a user", e.User)
	}
	var err error
	if e.Command, err = command(rest); err == nil && !e.Boot {
		e.Calendar, err = calendar(fields)
	}
	return e, err
}

// cut splits off the first word.
func cut(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t")
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}

func isUser(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" && s[0] != '-' && s[0] != '.'
}

// command reads the sixth field. cron ends the command at a "%", and passes the rest to
// its standard input, which has no counterpart here.
func command(s string) (string, error) {
	s = strings.ReplaceAll(strings.TrimRight(s, " \t"), `\%`, "\x00")
	if strings.Contains(s, "%") {
		return "", pools.Hint(`write \% for a percent sign`, `the command of cron has a "%%", which begins its input`)
	}
	return strings.ReplaceAll(s, "\x00", "%"), nil
}

// field is one of the five fields with its range.
type field struct {
	what        string
	first, last int
	names       []string // of first and the next ones
}

var (
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	fields   = [5]field{{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day", 1, 31, nil}, {"month", 1, 12, months}, {"weekday", 0, 7, weekdays}}
)

// calendar translates the five fields. When day and weekday are both restricted, cron runs
// the command on both.
func calendar(texts []string) ([]string, error) {
	var sets [5][]int
	for i, f := range fields {
		set, err := f.parse(texts[i])
		if err != nil {
			return nil, err
		}
		sets[i] = set
	}
	var days []string
	for _, n := range sets[4] {
		day := weekdays[n%7]
		if day = strings.ToUpper(day[:1]) + day[1:]; !slices.Contains(days, day) {
			days = append(days, day)
		}
	}
	weekday := strings.Join(days, ",") + " "
	if len(days) == 7 {
		weekday = ""
	}
	month, day := list(sets[3], 12), list(sets[2], 31)
	at := list(sets[1], 24) + ":" + list(sets[0], 60) + ":00"
	if weekday != "" && day != "*" && !strings.HasPrefix(texts[2], "*") && !strings.HasPrefix(texts[4], "*") {
		return []string{"*-" + month + "-" + day + " " + at, weekday + "*-" + month + "-* " + at}, nil
	}
	return []string{weekday + "*-" + month + "-" + day + " " + at}, nil
}

// list writes the values of a field with so many values.
func list(set []int, all int) string {
	if len(set) == all {
		return "*"
	}
	words := make([]string, len(set))
	for i, n := range set {
		words[i] = fmt.Sprintf("%02d", n)
	}
	return strings.Join(words, ",")
}

// parse returns the values of a field in their order: of *, numbers, names, ranges and
// steps, separated by commas.
func (f field) parse(s string) ([]int, error) {
	in := make([]bool, f.last+1)
	for item := range strings.SplitSeq(s, ",") {
		span, step, stepped := strings.Cut(item, "/")
		by, first, last := 1, f.first, f.last
		ok := true
		if stepped {
			n, err := strconv.Atoi(step)
			by, ok = n, err == nil && n > 0 && n <= f.last+1
		}
		if span != "*" {
			from, to, ranged := strings.Cut(span, "-")
			var ok1, ok2 bool
			first, ok1 = f.value(from)
			last, ok2 = first, ok1
			if ranged {
				last, ok2 = f.value(to)
			} else if stepped {
				ok2 = false
			}
			ok = ok && ok1 && ok2 && first <= last
		}
		if !ok {
			return nil, pools.Hint(fmt.Sprintf("write *, numbers from %d to %d, 1-5, */2 or 1,3", f.first, f.last), "%q is not the %s of a line of cron", s, f.what)
		}
		for n := first; n <= last; n += by {
			in[n] = true
		}
	}
	var set []int
	for n, is := range in {
		if is {
			set = append(set, n)
		}
	}
	return set, nil
}

func (f field) value(s string) (int, bool) {
	if i := slices.Index(f.names, strings.ToLower(s)); i >= 0 {
		return f.first + i, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && len(s) <= 2 && s[0] != '+' && s[0] != '-' && n >= f.first && n <= f.last
}
