package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"io"
	"strconv"
	"sync"

	"drover/internal/printable"
)

// The marks stand in a template for what differs between the readers of a page. Escaped texts
// cannot have them: they have quotes, or begin a comment.
const (
	// TagMark is the page's own ETag, as a string of JSON.
	TagMark = `"@tag@"`
	// ReaderMark is the reader's name.
	ReaderMark template.HTML = `<!--reader-->`
)

// Page is a page of a snapshot. All with the same rights share it; the reader's name and the ETag
// are put in for each.
type Page struct {
	mu    sync.Mutex
	parts []part
	sum   [sha256.Size]byte
}

// part is a part of a page: text, and the mark behind it; empty: none.
type part struct {
	text []byte
	mark string
}

// set sets the text of a page.
func (p *Page) set(body []byte) {
	p.sum = sha256.Sum256(body)
	for {
		next := part{text: body}
		for _, mark := range []string{TagMark, string(ReaderMark)} {
			if i := bytes.Index(next.text, []byte(mark)); i >= 0 {
				next = part{next.text[:i], mark}
			}
		}
		p.parts = append(p.parts, next)
		if next.mark == "" {
			return
		}
		body = body[len(next.text)+len(next.mark):]
	}
}

// Tag returns the ETag of the page for a reader: others have another, as their page differs.
func (p *Page) Tag(reader string) string {
	sum := sha256.Sum256(append(p.sum[:], reader...))
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// For writes the page for a reader.
func (p *Page) For(reader string, w io.Writer) error {
	values := map[string]string{
		TagMark:            strconv.Quote(p.Tag(reader)),
		string(ReaderMark): template.HTMLEscapeString(printable.Text(reader)),
	}
	for _, part := range p.parts {
		if _, err := w.Write(part.text); err != nil {
			return err
		}
		if _, err := io.WriteString(w, values[part.mark]); err != nil {
			return err
		}
	}
	return nil
}
