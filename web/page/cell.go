package page

import (
	"html/template"
	"strconv"
	"strings"

	"drover/web/page/table"
)

// cellFuncs are what templates show cells with. They are functions because a list has a thousand
// cells, for which a template takes most of the time of the page.
var cellFuncs = template.FuncMap{
	"cell": func(c table.Cell) template.HTML {
		var m markup
		m.cell(&c)
		return m.html()
	},
	"cells": func(row []table.Cell) template.HTML {
		var m markup
		for i := range row {
			if whole(row[i].Text) {
				m.write(`<td role="cell" class="whole">`)
			} else {
				m.write(`<td role="cell">`)
			}
			m.cell(&row[i])
			m.write("</td>")
		}
		return m.html()
	},
}

// The longest texts of cells that stay in one line, in bytes: of words, and of a name.
const (
	wholeWords = 24
	wholeName  = 48
)

// whole reports whether a text stays in one line: a name that is broken at a hyphen is easily read
// as two.
func whole(s string) bool {
	return s != "" && (len(s) <= wholeWords || len(s) <= wholeName && !strings.Contains(s, " "))
}

// markup is HTML in the making.
type markup struct{ b strings.Builder }

// html returns it. write has escaped the texts in it.
func (m *markup) html() template.HTML { return template.HTML(m.b.String()) }

// write appends markup and text in turn. Text is escaped, so that it can also be the value of an
// attribute in double quotes.
func (m *markup) write(parts ...string) {
	for i, part := range parts {
		if i%2 == 1 {
			part = template.HTMLEscapeString(part)
		}
		m.b.WriteString(part)
	}
}

// cell appends what stands in a cell.
func (m *markup) cell(c *table.Cell) {
	if c.State != "" {
		m.write(`<span class="state `, c.State, `">`, c.State, `</span> `)
	}
	switch {
	case c.Code && c.Text != "" && c.URL != "":
		m.write(`<a href="`, local(c.URL), `"><code>`, c.Text, `</code></a>`)
	case c.Code && c.Text != "":
		m.write(`<code>`, c.Text, `</code>`)
	case c.URL != "":
		m.write(`<a href="`, local(c.URL), `">`, c.Text, `</a>`)
	default:
		m.write("", c.Text)
	}
	if reached, all := c.Steps[0], c.Steps[1]; all > 0 {
		m.write(` <progress max="`, strconv.Itoa(all), `" value="`, strconv.Itoa(reached), `" aria-label="steps of the boot"></progress>`)
	}
	for i, l := range c.Links {
		if i > 0 {
			m.write(", ")
		}
		m.write(`<a href="`, local(l.URL), `">`, l.Text, `</a>`)
	}
	for _, s := range c.Sub {
		m.write(`<span class="sub">`, s, `</span>`)
	}
	for _, l := range c.Buttons {
		m.write(`<a class="button" href="`, local(l.URL), `">`, l.Text, `</a>`)
	}
}

// local returns a URL that leads to a page of this server; another one leads nowhere.
func local(url string) string {
	if !strings.HasPrefix(url, "/") || strings.HasPrefix(url, "//") || strings.HasPrefix(url, `/\`) {
		return "#"
	}
	return url
}
