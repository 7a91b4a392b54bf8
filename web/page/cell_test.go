package page

import (
	"html/template"
	"strings"
	"testing"

	"drover/web/page/table"
)

// TestCells: what a cell says is text, wherever it stands, and its links stay on this server.
func TestCells(t *testing.T) {
	const hostile = `"><script>alert('1')</script>&amp;` + "\x00"
	const inert = `&#34;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;` + "\uFFFD"
	cells := cellFuncs["cells"].(func([]table.Cell) template.HTML)
	for _, tt := range []struct {
		name string
		cell table.Cell
		want string
	}{
		{"nothing", table.Cell{}, `<td role="cell"></td>`},
		{"a name", table.Cell{Text: "node-525400770001"}, `<td role="cell" class="whole">node-525400770001</td>`},
		{"a text of words", table.Cell{Text: "no progress after the step of the initrd"}, `<td role="cell">no progress after the step of the initrd</td>`},
		{"hostile text", table.Cell{Text: hostile}, `<td role="cell" class="whole">` + inert + `</td>`},
		{
			"a link", table.Cell{Text: hostile, URL: "/nodes?q=" + hostile, State: hostile},
			`<td role="cell" class="whole"><span class="state ` + inert + `">` + inert + `</span> <a href="/nodes?q=` + inert + `">` + inert + `</a></td>`,
		},
		{"code", table.Cell{Text: hostile, Code: true}, `<td role="cell" class="whole"><code>` + inert + `</code></td>`},
		{"code with a link", table.Cell{Text: "a", URL: "/a", Code: true}, `<td role="cell" class="whole"><a href="/a"><code>a</code></a></td>`},
		{"script as a link", table.Cell{Text: "a", URL: "javascript:alert(1)"}, `<td role="cell" class="whole"><a href="#">a</a></td>`},
		{"another server", table.Cell{Text: "a", URL: "//example.net/a"}, `<td role="cell" class="whole"><a href="#">a</a></td>`},
		{"another server with a backslash", table.Cell{Text: "a", URL: `/\example.net/a`}, `<td role="cell" class="whole"><a href="#">a</a></td>`},
		{
			"the rest", table.Cell{Steps: [2]int{2, 9}, Sub: []string{hostile, "b"}, Links: []table.Link{{Text: hostile, URL: "/a"}, {Text: "b", URL: "/b"}}, Buttons: []table.Link{{Text: "Add", URL: "/change"}}},
			`<td role="cell"> <progress max="9" value="2" aria-label="steps of the boot"></progress><a href="/a">` + inert + `</a>, <a href="/b">b</a><span class="sub">` + inert +
				`</span><span class="sub">b</span><a class="button" href="/change">Add</a></td>`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := string(cells([]table.Cell{tt.cell}))
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if one := string(cellFuncs["cell"].(func(table.Cell) template.HTML)(tt.cell)); !strings.Contains(got, ">"+one+"</td>") {
				t.Errorf("alone it is %s", one)
			}
		})
	}
}
