package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"drover/internal/wait"
)

// silence is the longest time without a word of a server that is there: it speaks every 15 s.
const silence = time.Minute

// comeBack is the time until a watch begins again.
const comeBack = 2 * time.Second

// Event is the list that is watched, or a change of it.
type Event[E any] struct {
	Kind    string // list, added, changed, removed
	List    []E    // the whole list
	Element E      // what is added, changed or removed
}

// Watch returns a list and its changes, until ctx ends or the caller stops. When the server
// ends the stream or is gone, Watch returns the error, and goes on if the caller does: with
// the changes since, or the list again. An [*Error] with a status below 500 is the last.
func Watch[E any](ctx context.Context, c *Client, path Path[[]E], query url.Values) iter.Seq2[Event[E], error] {
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("watch", "true")
	return func(yield func(Event[E], error) bool) {
		last := ""
		for ctx.Err() == nil {
			stopped := false
			err := c.stream(ctx, withQuery(string(path), query), &last, func(kind string, data []byte) error {
				e := Event[E]{Kind: kind}
				var err error
				if kind == "list" {
					err = json.Unmarshal(data, &e.List)
				} else {
					err = json.Unmarshal(data, &e.Element)
				}
				if err == nil && !yield(e, nil) {
					stopped, err = true, io.EOF
				}
				return err
			})
			if stopped || ctx.Err() != nil || !yield(Event[E]{}, err) {
				return
			}
			if e, ok := errors.AsType[*Error](err); ok && e.Status < 500 || wait.Sleep(ctx, comeBack) != nil {
				return
			}
		}
	}
}

// stream calls do with the events of a stream, until it ends; its error says why. The last ID
// is kept in last.
func (c *Client) stream(ctx context.Context, path string, last *string, do func(kind string, data []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(silence, cancel)
	defer silent.Stop()
	endless := *c
	if c.HTTP != nil {
		h := *c.HTTP
		h.Timeout = 0
		endless.HTTP = &h
	}
	header := http.Header{}
	if *last != "" {
		header.Set("Last-Event-ID", *last)
	}
	resp, err := endless.send(ctx, Call{Method: http.MethodGet, Path: path}, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // half an error says little
		return newError(resp, data)
	}
	r := bufio.NewReader(resp.Body)
	for {
		kind, data, err := readEvent(r, last, func() { silent.Reset(silence) })
		switch {
		case err != nil:
			return &UnreachableError{fmt.Errorf("the watch broke off: %w", err)}
		case kind == "end":
			resp.Status = "with the end of the watch"
			resp.StatusCode = http.StatusServiceUnavailable
			e := newError(resp, data)
			if e.Problem.Status != 0 {
				e.Status = e.Problem.Status
			}
			return e
		case kind != "":
			if err := do(kind, data); err != nil {
				return err
			}
		}
	}
}

// readEvent reads an event up to the empty line behind it. Its kind is empty if it has none.
func readEvent(r *bufio.Reader, last *string, alive func()) (kind string, data []byte, err error) {
	for size := 0; size < maxAnswer; {
		line, err := readLine(r, maxAnswer-size)
		if err != nil {
			return "", nil, err
		}
		alive()
		size += len(line) + 1
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			return kind, data, nil
		case field == "id":
			*last = value
		case field == "event":
			kind = value
		case field == "data":
			data = append(append(data, value...), '\n')
		}
	}
	return "", nil, errTooLong
}

var errTooLong = fmt.Errorf("an event of more than %d bytes", maxAnswer)

// readLine reads a line of at most some bytes, and returns it without its end.
func readLine(r *bufio.Reader, most int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		switch line = append(line, part...); {
		case len(line) > most:
			return "", errTooLong
		case err == nil:
			return string(line[:len(line)-1]), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}
