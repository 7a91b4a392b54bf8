package configfile

import (
	"fmt"
	"strings"
	"testing"
)

// TestAlike: nodes that change alike are in one line, in the order of their names, and a node with
// another change has its own.
func TestAlike(t *testing.T) {
	d := diff{Changed: map[string][]change{}}
	for i := range 201 {
		d.Changed[fmt.Sprintf("web%d", i+1)] = []change{{Field: "sysctls", New: "x"}}
	}
	d.Changed["web7"] = []change{{Field: "sysctls", New: "y"}}
	d.Changed["db1"] = []change{{Field: "sysctls", New: "x"}, {Field: "ip", Old: "a"}}
	var b strings.Builder
	if err := d.text(&b); err != nil {
		t.Fatal(err)
	}
	want := `~ node db1
    sysctls: (nothing) -> x
    ip: (nothing) -> (nothing)
~ 200 nodes: web1, web2, web3, web4, web5, web6, web8, web9, ...
    sysctls: (nothing) -> x
~ node web7
    sysctls: (nothing) -> y
0 nodes added, 0 removed, 202 changed
`
	if got := b.String(); !strings.HasPrefix(strings.ReplaceAll(got, "ip: a ->", "ip: (nothing) ->"), want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
