package nodefile

import (
	"encoding/csv"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"drover/migrate/inventory"
	"drover/pools"
	"drover/pools/config/decode"
	"drover/pools/config/mistake"
)

// copyField copies the field of a column from one node to another.
var copyField = map[string]func(to, from *pools.PoolNode){
	"name":   func(to, from *pools.PoolNode) { to.Name = from.Name },
	"pool":   func(to, from *pools.PoolNode) { to.Pool = from.Pool },
	"mac":    func(to, from *pools.PoolNode) { to.MACs = from.MACs },
	"ip":     func(to, from *pools.PoolNode) { to.IP = from.IP },
	"ip6":    func(to, from *pools.PoolNode) { to.IP6 = from.IP6 },
	"tags":   func(to, from *pools.PoolNode) { to.Tags = from.Tags },
	"ignore": func(to, from *pools.PoolNode) { to.Ignore = from.Ignore },
}

// table is a table that is being read.
type table struct {
	columns []string
	entries []Entry
	errs    mistake.Errors
}

func readTable(file string, data []byte) ([]Entry, error) {
	t := &table{}
	if err := inventory.Table(file, data, t.head, t.row); err != nil {
		return nil, err
	}
	return t.entries, t.errs.Err()
}

func (t *table) fail(at pools.Origin, hint, format string, args ...any) {
	t.errs = append(t.errs, &mistake.Error{Origin: at, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// head reads the names of the columns, which may be those that drover import csv takes.
func (t *table) head(at pools.Origin, names []string) error {
	for _, name := range names {
		column := strings.ToLower(strings.TrimSpace(name))
		if copyField[column] == nil {
			column = inventory.Field(name)
		}
		switch {
		case copyField[column] == nil:
			hint := mistake.Hint(strings.TrimSpace(name), columnNames(), "")
			t.fail(at, hint, "unknown column %q", name)
		case slices.Contains(t.columns, column) && column != "mac": // mac1, mac2
			t.fail(at, "leave one out", "two columns have the %s", column)
		}
		t.columns = append(t.columns, column)
	}
	if !slices.Contains(t.columns, "name") {
		t.fail(at, "the first line names the columns: name,pool,mac,ip", "no column has the names of the nodes")
	}
	return t.errs.Err()
}

// row reads a node.
func (t *table) row(at pools.Origin, values []string) {
	e := Entry{Origin: at, columns: t.columns}
	if len(values) > len(t.columns) {
		t.fail(at, "quote a value that has the separator in it", "%d values in %d columns", len(values), len(t.columns))
		return
	}
	some := false
	for i, text := range values {
		text = strings.TrimSpace(text)
		some = some || text != ""
		if err := set(&e.Node, t.columns[i], text); err != nil {
			t.fail(at, "", "column %s: %v", t.columns[i], err)
		}
	}
	switch {
	case !some:
		return
	case e.Node.Name == "":
		t.fail(at, "", "a node without a name")
	case e.Node.Pool == "" && slices.Contains(t.columns, "pool"):
		t.fail(at, "", "node %q has no pool", e.Node.Name)
	}
	t.entries = append(t.entries, e)
}

// set sets the field of a column.
func set(n *pools.PoolNode, column, text string) (err error) {
	if text == "" || text == "-" {
		return nil
	}
	switch column {
	case "name":
		n.Name = text
	case "pool":
		n.Pool = text
	case "mac":
		for _, word := range inventory.Words(text) {
			m, err := pools.ParseMAC(word)
			if err != nil {
				return err
			}
			n.MACs = append(n.MACs, m)
		}
	case "ip":
		if n.IP, err = netip.ParseAddr(text); err != nil || !n.IP.Is4() {
			return fmt.Errorf("%q is not an IPv4 address", text)
		}
	case "ip6":
		if n.IP6, err = netip.ParseAddr(text); err != nil || !n.IP6.Is6() {
			return fmt.Errorf("%q is not an IPv6 address", text)
		}
	case "tags":
		n.Tags = inventory.Words(text)
	case "ignore":
		if n.Ignore, err = strconv.ParseBool(strings.ToLower(text)); err != nil {
			return fmt.Errorf("%q: want true or false", text)
		}
	}
	return nil
}

// WriteList writes nodes as YAML.
func WriteList(w io.Writer, nodes []pools.PoolNode) error {
	if nodes == nil {
		nodes = []pools.PoolNode{} // [] rather than null
	}
	doc, err := decode.Document(list{nodes})
	if err != nil {
		return err
	}
	for _, n := range doc.Content[0].Content[1].Content {
		decode.NodeLine(n)
	}
	return decode.Write(w, doc)
}

// WriteTable writes nodes as a table. It returns the names of those that have more than its
// columns.
func WriteTable(w io.Writer, nodes []pools.PoolNode) (more []string, err error) {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"name", "pool", "macs", "ip", "ip6", "tags", "ignore"}) // Flush and Error
	for _, n := range nodes {
		macs := make([]string, len(n.MACs))
		for i, m := range n.MACs {
			macs[i] = m.String()
		}
		ignore := ""
		if n.Ignore {
			ignore = "true"
		}
		_ = c.Write([]string{n.Name, n.Pool, strings.Join(macs, " "), addr(n.IP), addr(n.IP6), strings.Join(n.Tags, " "), ignore})
		if !n.Match.IsZero() || len(n.DHCPOptions) > 0 || n.Lease != 0 || !n.ChassisSlot.IsZero() || n.Power != nil {
			more = append(more, n.Name)
		}
	}
	c.Flush()
	return more, c.Error()
}

func addr(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
