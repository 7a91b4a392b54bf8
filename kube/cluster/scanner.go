package cluster

import (
	"bytes"
	"fmt"
)

// Costs of JSON, in bytes of memory. A decoder makes a struct, a slice element or a map
// entry of two or three bytes: four million times "{}," are 12 MB of text and several GB
// of Nodes. So the elements of arrays and the members of objects cost more than their
// text. The costs are about the sizes of the types that drover decodes.
const (
	itemCost    = 2048 // of an item of a list: a Pod has 1.2 KB
	elementCost = 256  // of an element of another array
	memberCost  = 32   // of a member of an object

	itemDepth = 2   // brackets around an item: {"items":[
	maxDepth  = 100 // brackets around a value; managedFields have about 20
)

// scanner estimates the memory that JSON takes once it is decoded, from the text as it
// passes by. It does not check the syntax: for text that is not JSON the decoder returns
// an error.
type scanner struct {
	stream  bool   // of many values, each of which has the limit of its own
	cost    int    // of the text, or of the current value of a stream
	item    int    // cost before the current item of a list
	open    []byte // open brackets
	quoted  bool   // inside of a string
	escaped bool   // after a backslash
}

// scan reads the next piece of the text. It returns the cost of the piece and the number
// of values of a stream that end in it, or an error if the text, or a value of a stream,
// costs more than limit.
func (s *scanner) scan(text []byte, limit int) (cost, values int, err error) {
	for i := 0; i < len(text); i++ {
		added := 1
		switch c := text[i]; {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			n := bytes.IndexAny(text[i:], "\"\\")
			if n < 0 {
				n = len(text) - i - 1
			}
			i += n
			added += n
			s.escaped, s.quoted = text[i] == '\\', text[i] != '"'
		case c == '"':
			s.quoted = true
		case c == '{', c == '[':
			s.open = append(s.open, c)
			added += s.next()
		case c == ',':
			added += s.next()
		case (c == '}' || c == ']') && len(s.open) > 0:
			if s.open = s.open[:len(s.open)-1]; s.stream && len(s.open) == 0 {
				s.cost = -added
				values++
			}
		}
		cost += added
		if s.cost += added; s.cost > limit {
			return cost, values, fmt.Errorf("it takes more than %d MiB of memory", limit>>20)
		}
		if len(s.open) > itemDepth && s.cost-s.item > maxObject {
			return cost, values, fmt.Errorf("one of its objects takes more than %d MiB of memory", maxObject>>20)
		}
		if len(s.open) > maxDepth {
			return cost, values, fmt.Errorf("it is nested deeper than %d", maxDepth)
		}
	}
	return cost, values, nil
}

// next returns the cost of the next element or member of the innermost bracket.
func (s *scanner) next() int {
	switch depth := len(s.open); {
	case depth == 0:
		return 0
	case s.open[depth-1] == '{':
		return memberCost
	case depth == itemDepth:
		s.item = s.cost
		return itemCost
	}
	return elementCost
}
