package page

import (
	"strings"
	"time"

	"drover/internal/printable"
	"drover/pools/boots"
	"drover/web/page/text"
)

// ConsoleLine is a line that a machine's kernel has sent.
type ConsoleLine struct {
	Time time.Time
	Text string
}

// consoleView is what the kernel of a machine has sent in a boot.
type consoleView struct {
	Text string // line by line; empty: it has sent nothing
	N    int    // lines
	Last string // when the last one came
}

// maxConsole bounds the lines that a page shows: the newest ones.
const maxConsole = 300

// console sets the lines that came in a boot.
func (v *nodeView) console(p *page, b *boots.Record, r *request) {
	if p.Console == nil {
		return
	}
	lines, listening := p.Console(b.MAC, b.ID)
	if !listening {
		return
	}
	v.Console = &consoleView{N: len(lines)}
	if len(lines) == 0 {
		return
	}
	v.Console.Last = text.Ago(r.shared.Now.Sub(lines[len(lines)-1].Time))
	var all strings.Builder
	for _, l := range lines[max(0, len(lines)-maxConsole):] {
		all.WriteString(printable.Line(l.Text, 2*maxText) + "\n")
	}
	v.Console.Text = all.String()
}
