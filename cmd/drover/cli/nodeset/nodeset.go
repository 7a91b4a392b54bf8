// Package nodeset reads how an operator names nodes on the command line: lists and ranges
// such as m1c[01-45]n1,m2c7, and rules such as pool=web,tag=gpu.
//
// It does not know which nodes there are.
package nodeset

import (
	"fmt"
	"strconv"
	"strings"
)

// maxNames bounds the names that a selector stands for.
const maxNames = 20_000

// Words splits a selector at commas and blanks outside of brackets.
func Words(selector string) (words []string) {
	depth, begin := 0, 0
	end := func(i int) {
		if i > begin {
			words = append(words, selector[begin:i])
		}
		begin = i + 1
	}
	for i, r := range selector {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth <= 0 && (r == ',' || r == ' '):
			end(i)
		}
	}
	end(len(selector))
	return words
}

// Expand returns the names of a list with ranges, in its order and each once: m1c[1-3,7]n1
// stands for m1c1n1, m1c2n1, m1c3n1 and m1c7n1. Numbers have as many digits as the first of
// their range.
func Expand(list ...string) ([]string, error) {
	var all []string
	seen := map[string]bool{}
	for _, word := range Words(strings.Join(list, ",")) {
		names, err := expand(word)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", word, err)
		}
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				all = append(all, name)
			}
		}
		if len(all) > maxNames {
			return nil, fmt.Errorf("%q: more than %d names", word, maxNames)
		}
	}
	return all, nil
}

// IsPattern reports whether a word is a range, and no name.
func IsPattern(word string) bool { return strings.ContainsAny(word, "[]") }

// expand returns the names of one word.
func expand(word string) ([]string, error) {
	before, rest, found := strings.Cut(word, "[")
	if strings.Contains(before, "]") {
		return nil, fmt.Errorf("a ] without [ (write m1c[01-45])")
	}
	if !found {
		return []string{word}, nil
	}
	inside, after, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, fmt.Errorf("a [ without ] (write m1c[01-45])")
	}
	numbers, err := ranges(inside)
	if err != nil {
		return nil, err
	}
	tails, err := expand(after)
	if err != nil {
		return nil, err
	}
	if len(numbers)*len(tails) > maxNames {
		return nil, fmt.Errorf("more than %d names", maxNames)
	}
	var out []string
	for _, n := range numbers {
		for _, tail := range tails {
			out = append(out, before+n+tail)
		}
	}
	return out, nil
}

// ranges returns the numbers of "01-45,50".
func ranges(text string) (out []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 32)
		last, err2 := strconv.ParseUint(to, 10, 32)
		switch {
		case err1 != nil || err2 != nil:
			return nil, fmt.Errorf("[%s]: want numbers, such as [01-45] or [1-3,7]", text)
		case first > last:
			return nil, fmt.Errorf("[%s]: %s is more than %s", text, from, to)
		case last-first >= maxNames:
			return nil, fmt.Errorf("[%s]: more than %d names", text, maxNames)
		}
		for n := first; n <= last; n++ {
			out = append(out, fmt.Sprintf("%0*d", len(from), n))
		}
	}
	return out, nil
}
