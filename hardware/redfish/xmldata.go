package redfish

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"drover/hardware/bmc"
	"drover/internal/printable"
)

// ParseXMLData reads the page /xmldata?item=All of an iLO. It accepts values padded with
// blanks, names in any case, and bytes that XML does not allow. Errors wrap
// [bmc.ErrUnreadable].
func ParseXMLData(data []byte) (Server, error) {
	if len(data) > bmc.MaxAnswer {
		return Server{}, fmt.Errorf("%w: %d bytes of xmldata, more than %d", bmc.ErrUnreadable, len(data), bmc.MaxAnswer)
	}
	d := xml.NewDecoder(bytes.NewReader(asXML(data)))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var x xmlData
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Server{}, fmt.Errorf("%w: xmldata: %s", bmc.ErrUnreadable, printable.Line(err.Error(), maxShown))
		}
		if err := x.token(token); err != nil {
			return Server{}, err
		}
	}
	switch {
	case x.enclosure:
		return Server{}, fmt.Errorf("%w: xmldata: that is the administrator of an enclosure, not an iLO", bmc.ErrUnreadable)
	case x.server.ID() == "":
		return Server{}, fmt.Errorf("%w: xmldata: neither a serial number nor a UUID", bmc.ErrUnreadable)
	}
	return x.server, nil
}

// asXML replaces characters that XML does not allow.
func asXML(data []byte) []byte {
	text := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(data), "?"))
	return []byte(text)
}

// xmlData collects the values of a server from the elements of xmldata.
type xmlData struct {
	path      []string // of the current element, lower case
	text      strings.Builder
	server    Server
	enclosure bool // the page is that of the administrator of a blade enclosure

	card struct{ mac, description string }
}

// maxDepth bounds how deep elements may nest; a real document has 5 levels.
const maxDepth = 64

func (x *xmlData) token(t xml.Token) error {
	switch t := t.(type) {
	case xml.StartElement:
		x.path = append(x.path, strings.ToLower(t.Name.Local))
		x.text.Reset()
		if len(x.path) > maxDepth {
			return fmt.Errorf("%w: xmldata: elements nest deeper than %d", bmc.ErrUnreadable, maxDepth)
		}
		x.enclosure = x.enclosure || x.path[len(x.path)-1] == "infra2"
		if x.is("hsi", "nics", "nic") {
			x.card.mac, x.card.description = "", ""
		}
	case xml.CharData:
		x.text.Write(t)
	case xml.EndElement:
		if err := x.end(printable.Line(x.text.String(), maxText)); err != nil {
			return err
		}
		x.path = x.path[:max(0, len(x.path)-1)]
		x.text.Reset()
	}
	return nil
}

// is reports whether the current element has that path below the root.
func (x *xmlData) is(names ...string) bool {
	return len(x.path) == len(names)+1 && strings.Join(x.path[1:], "/") == strings.Join(names, "/")
}

func (x *xmlData) end(text string) error {
	switch {
	case x.is("hsi", "sbsn"):
		x.server.Serial = text
	case x.is("hsi", "spn"):
		x.server.Product = text
	case x.is("hsi", "cuuid"):
		x.server.UUID = strings.ToLower(text)
	case x.is("hsi", "nics", "nic", "macaddr"):
		x.card.mac = text
	case x.is("hsi", "nics", "nic", "description"):
		x.card.description = text
	case x.is("hsi", "nics", "nic"):
		if strings.HasPrefix(strings.ToLower(x.card.description), "ilo") {
			return nil // the management processor itself
		}
		if err := x.server.add(x.card.mac); err != nil {
			return fmt.Errorf("%w: xmldata: %w", bmc.ErrUnreadable, err)
		}
	}
	return nil
}
