package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/web/client"
)

// follow watches unknown machines until done says so of what it has seen, each event and error as
// a line.
func follow(ctx context.Context, c *client.Client, done func(seen []string) bool) (seen []string) {
	for e, err := range client.Watch(ctx, c, client.Unknown, nil) {
		line := fmt.Sprintf("%s %d %s", e.Kind, len(e.List), e.Element.Pool)
		if err != nil {
			line = "error: " + err.Error()
		}
		if seen = append(seen, line); done(seen) {
			break
		}
	}
	return seen
}

func after(n int) func([]string) bool { return func(seen []string) bool { return len(seen) >= n } }

// want fails the test unless these lines were seen.
func want(t *testing.T, got []string, lines ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(lines, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// TestWatch: a watch has the list and its changes. When the stream ends it begins again, after
// the last event that it has seen.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		began := time.Now()
		c := through(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, fmt.Sprintf("%s after %q at %s with %q", r.URL.RequestURI(), r.Header.Get("Last-Event-ID"), time.Since(began), r.Header.Get("Authorization")))
			if len(asked) == 2 {
				return nil, errors.New("connection refused")
			}
			return respond(200, strings.NewReader("retry: 2000\n\nid: 7\nevent: list\ndata: [{\"pool\": \"a\"},\ndata: {\"pool\": \"b\"}]\n\n:\n\nid: 8\nevent: added\ndata: {\"pool\": \"c\"}\n\nid: 9\nevent: removed\ndata: {\"pool\": \"a\"}\n\nevent: added\ndata: {\"pool\": \"half")), nil
		})
		c.HTTP.Timeout = time.Nanosecond // it is for answers, and a watch has no end
		got := follow(t.Context(), c, after(6))
		want(t, got, "list 2 ", "added 0 c", "removed 0 a", "error: the watch broke off: EOF", "error: connection refused", "list 2 ")
		want(
			t, asked,
			`/api/v1/unknown?watch=true after "" at 0s with "Bearer `+token+`"`,
			`/api/v1/unknown?watch=true after "9" at 2s with "Bearer `+token+`"`,
			`/api/v1/unknown?watch=true after "9" at 4s with "Bearer `+token+`"`,
		)
	})
}

// TestWatchRefused: an error of the client is the last, and one of the server is not.
func TestWatchRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			status int
			body   string
			want   string
			again  bool
		}{
			{401, `{"error": "no token"}`, "error: no token", false},
			{400, `{"error": "bad parameter"}`, "error: bad parameter", false},
			{503, `{"error": "too many watches"}`, "error: too many watches", true},
			{502, `<html>`, "error: answered Bad Gateway: is that the API of a drover?", true},
			{200, "event: end\ndata: {\"status\": 401, \"error\": \"no longer allowed\"}\n\n", "error: no longer allowed", false},
			{200, "event: end\ndata: {\"status\": 503, \"error\": \"the server stops\"}\n\n", "error: the server stops", true},
			{200, "event: end\ndata: x\n\n", "error: answered with the end of the watch: is that the API of a drover?", true},
		} {
			asked := 0
			c := through(func(*http.Request) (*http.Response, error) {
				asked++
				return respond(tt.status, strings.NewReader(tt.body)), nil
			})
			got := follow(t.Context(), c, after(2))
			if again := len(got) == 2 && asked == 2; again != tt.again || got[0] != tt.want {
				t.Errorf("%d %s: asked %d times, got %q", tt.status, tt.body, asked, got)
			}
		}
	})
}

// TestWatchSilence: a server that says nothing for a minute is taken for gone. A comment is
// enough to be there.
func TestWatchSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := through(func(r *http.Request) (*http.Response, error) {
			out, in := io.Pipe()
			go func() {
				for range 10 {
					time.Sleep(50 * time.Second)
					if _, err := io.WriteString(in, ":\n\n"); err != nil {
						break
					}
				}
				<-r.Context().Done()
				_ = in.CloseWithError(r.Context().Err())
			}()
			return respond(200, out), nil
		})
		got := follow(t.Context(), c, after(1))
		if took := time.Since(began); took != 560*time.Second || !strings.HasPrefix(got[0], "error: the watch broke off") {
			t.Errorf("after %s: %q", took, got)
		}
	})
}

// TestWatchEnds: a watch ends with its context, and when the caller stops. Then nothing is asked
// any more, and the stream is closed.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, open atomic.Int32
		c := through(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			open.Add(1)
			out, in := io.Pipe()
			go func() {
				_, _ = io.WriteString(in, "event: list\ndata: []\n\n")
				<-r.Context().Done()
				open.Add(-1)
				_ = in.CloseWithError(r.Context().Err())
			}()
			return respond(200, out), nil
		})
		want(t, follow(t.Context(), c, after(1)), "list 0 ")
		ctx, cancel := context.WithCancel(t.Context())
		want(t, follow(ctx, c, func([]string) bool { cancel(); return false }), "list 0 ")
		want(t, follow(ctx, c, after(1)))
		synctest.Wait()
		if asked.Load() != 2 || open.Load() != 0 {
			t.Errorf("asked %d times, %d streams are open", asked.Load(), open.Load())
		}
	})
}

// TestWatchHostile: a stream that is none ends the watch with an error, and is not read without
// a bound.
func TestWatchHostile(t *testing.T) {
	for name, body := range map[string]*endless{
		"a line without an end":   {text: "data: xxxxxxxxxxxxxxxx"},
		"an event without an end": {text: "data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"},
		"a field without an end":  {text: "nonsense"},
	} {
		c := through(func(*http.Request) (*http.Response, error) { return respond(200, body), nil })
		got := follow(t.Context(), c, after(1))
		if body.read > maxRead {
			t.Errorf("%s: read %d bytes", name, body.read)
		}
		want(t, got, "error: the watch broke off: an event of more than 67108864 bytes")
	}
	for _, text := range []string{"event: list\ndata: {}\n\n", "event: list\n\n", "event: added\ndata: [\n\n", "event: nonsense\ndata: \x00\n\n"} {
		c := through(func(*http.Request) (*http.Response, error) { return respond(200, strings.NewReader(text)), nil })
		got := follow(t.Context(), c, after(1))
		if len(got) != 1 || !strings.HasPrefix(got[0], "error: ") {
			t.Errorf("%q: got %q", text, got)
		}
		fixture.WantNoText(t, text, got[0], token)
	}
}

// TestWatchQuery: the query of the caller stays as it is.
func TestWatchQuery(t *testing.T) {
	query := map[string][]string{"pool": {"compute"}}
	c := through(func(r *http.Request) (*http.Response, error) {
		return respond(400, strings.NewReader(fmt.Sprintf("{\"error\": %q}", r.URL.RawQuery))), nil
	})
	for _, err := range client.Watch(t.Context(), c, client.Path[[]pools.Unknown]("/x"), query) {
		if err == nil || err.Error() != "pool=compute&watch=true" || len(query) != 1 {
			t.Errorf("got %v, and %v", err, query)
		}
	}
}
