package redfish_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"drover/e2e/ilosim"
	"drover/hardware/bmc"
	"drover/hardware/redfish"
)

// hostile starts a management processor and returns a client for it. The processor
// answers no more than 2000 requests, so that a client without bounds ends as well.
func hostile(t *testing.T, h http.HandlerFunc) (*redfish.Client, *atomic.Int64) {
	t.Helper()
	requests := &atomic.Int64{}
	s, err := ilosim.ServeHTTPS("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 2000 {
			http.Error(w, "enough", http.StatusNotFound)
			return
		}
		h(w, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := redfish.Open(bmc.Login{
		Address: s.Addr, User: "a", Password: "b", TLSPin: s.Pin,
		Timeouts: bmc.Timeouts{Command: 2 * time.Second, Backoff: time.Millisecond, Inventory: 4 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, requests
}

// page answers with a page of a collection.
func page(w io.Writer, next string, members ...string) {
	for i, m := range members {
		members[i] = fmt.Sprintf(`{"@odata.id": %q}`, m)
	}
	fmt.Fprintf(w, `{"Members": [%s], "Members@odata.nextLink": %q}`, strings.Join(members, ","), next)
}

// TestHostileCollection reads collections that never end, or are too large (finding H12).
func TestHostileCollection(t *testing.T) {
	const at = "/rest/v1/Systems"
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		kind   error
		says   string // empty: no error
		most   int64  // requests
	}{
		{"longer paths", func(w http.ResponseWriter, r *http.Request) { page(w, r.URL.Path+"x") }, bmc.ErrUnreadable, "more than 64 pages", 64},
		{"queries", func(w http.ResponseWriter, r *http.Request) {
			page(w, fmt.Sprintf("%s?page=%d", at, time.Now().UnixNano()), at+"/1")
		}, bmc.ErrUnreadable, "more than 64 pages", 64},
		{"relative links", func(w http.ResponseWriter, r *http.Request) { page(w, "x"+strings.TrimPrefix(r.URL.Path, "/")) }, bmc.ErrUnreadable, "more than 64 pages", 64},
		{"the first page again", func(w http.ResponseWriter, _ *http.Request) { page(w, at, at+"/1") }, nil, "", 1},
		{"a circle of two", func(w http.ResponseWriter, r *http.Request) {
			page(w, map[bool]string{true: at, false: at + "/"}[strings.HasSuffix(r.URL.Path, "/")])
		}, nil, "", 2},
		{"fragments", func(w http.ResponseWriter, _ *http.Request) {
			page(w, fmt.Sprintf("%s#%d", at, time.Now().UnixNano()))
		}, bmc.ErrUnreadable, "more than 64 pages", 64},
		{"another host", func(w http.ResponseWriter, _ *http.Request) { page(w, "https://192.0.2.1/x") }, bmc.ErrUnreadable, "leads elsewhere, to 192.0.2.1", 1},
		{"another host without a scheme", func(w http.ResponseWriter, _ *http.Request) { page(w, "//192.0.2.1/x") }, bmc.ErrUnreadable, "leads elsewhere", 1},
		{"another scheme", func(w http.ResponseWriter, r *http.Request) { page(w, "http://"+r.Host+"/x") }, bmc.ErrUnreadable, "leads elsewhere", 1},
		{"a member elsewhere", func(w http.ResponseWriter, _ *http.Request) { page(w, "", "https://192.0.2.1/x") }, bmc.ErrUnreadable, "leads elsewhere", 1},
		{"a huge link", func(w http.ResponseWriter, _ *http.Request) { page(w, "/"+strings.Repeat("x", 5000)) }, bmc.ErrUnreadable, "a link of 5001 bytes", 1},
		{"a huge member", func(w http.ResponseWriter, _ *http.Request) { page(w, "", "/"+strings.Repeat("x", 5000)) }, bmc.ErrUnreadable, "a link of 5001 bytes", 1},
		{"a link for a terminal", func(w http.ResponseWriter, _ *http.Request) { page(w, "", "/\u202e\u009b1m") }, bmc.ErrUnreadable, `\u202e`, 1},
		{"members without end", func(w http.ResponseWriter, r *http.Request) {
			var all []string
			for i := range 500 {
				all = append(all, fmt.Sprintf("%s/%d", r.URL.Path, i))
			}
			page(w, r.URL.Path+"x", all...)
		}, bmc.ErrUnreadable, "more than 1440 members", 3},
		{"values without end", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"a": [%s0]}`, strings.Repeat("{},", 1<<18))
		}, bmc.ErrUnreadable, "more than 32768 values", 1},
		{"redirects without end", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusPermanentRedirect)
		}, bmc.ErrUnreachable, "308", 5},
		{"redirects that grow", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+strings.Repeat("x", 500), http.StatusPermanentRedirect)
		}, bmc.ErrUnreadable, "a link of", 5},
		{"a redirect to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://192.0.2.1/", http.StatusFound)
		}, bmc.ErrUnreadable, "another host", 1},
		{"busy for ever", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, bmc.ErrUnreachable, "503", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, requests := hostile(t, tt.answer)
			_, err := c.Collection(t.Context(), at)
			if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("got %v, want %v that says %q", err, tt.kind, tt.says)
			}
			if n := requests.Load(); n > tt.most {
				t.Errorf("got %d requests, want %d at most", n, tt.most)
			}
		})
	}
}

// TestHostileAnswer reads answers that are too large, too slow or compressed, and that
// write to a terminal (findings H12 and M12).
func TestHostileAnswer(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 64<<20)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	drip := func(w http.ResponseWriter, text string) {
		for { // until the connection breaks: a handler that returns would complete its answer
			if _, err := io.WriteString(w, text); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	raw := func(answer func(w io.Writer)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			answer(conn)
		}
	}
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		kind   error
		says   string
	}{
		{"too large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) }, bmc.ErrUnreadable, "more than 1048576 bytes"},
		{"compressed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		}, bmc.ErrUnreadable, "compressed"},
		{"a slow body", func(w http.ResponseWriter, _ *http.Request) { drip(w, " ") }, bmc.ErrUnreachable, "deadline"},
		{"slow header fields", raw(func(w io.Writer) {
			_, err := io.WriteString(w, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(w, "A: b\r\n")
				time.Sleep(20 * time.Millisecond)
			}
		}), bmc.ErrUnreachable, "deadline"},
		{"header fields without end", raw(func(w io.Writer) {
			_, err := io.WriteString(w, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(w, strings.Repeat("A: b\r\n", 1000))
			}
		}), bmc.ErrUnreachable, "header"},
		{"a status for a terminal", raw(func(w io.Writer) {
			_, _ = io.WriteString(w, "HTTP/1.1 500 \x1b]0;owned\x07\x1b[2J\u009b\u202e\xff"+strings.Repeat("x", 500)+"\r\nContent-Length: 0\r\n\r\n")
		}), bmc.ErrUnreachable, "?]0;owned??[2J"},
		{"a message for a terminal", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"Messages": [{"MessageID": "\u001b[2J\u202e"}]}`)
		}, bmc.ErrRejected, "(?[2J?)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := hostile(t, tt.answer)
			_, err := c.Get(t.Context(), "/rest/v1")
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 400 || !utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\x1b\x07\u009b\u202e") {
				t.Errorf("got %v, want %v that says %q", err, tt.kind, tt.says)
			}
		})
	}
}

// TestSlowInventory: every answer is in time, but the inventory never ends (finding H12).
func TestSlowInventory(t *testing.T) {
	c, _ := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second):
			page(w, r.URL.Path+"x")
		}
	})
	c.Timeouts.Command = time.Minute
	if _, err := c.Server(t.Context()); !errors.Is(err, bmc.ErrUnreachable) || !strings.Contains(err.Error(), "not complete within 4s") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Server(ctx); err == nil || strings.Contains(err.Error(), "not complete") {
		t.Errorf("interrupted: got %v", err)
	}
}

// TestManyCards: the memory for one machine is bounded (finding H12).
func TestManyCards(t *testing.T) {
	var x, list strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&x, "<NIC><MACADDR>52:54:00:00:%02x:%02x</MACADDR></NIC>", i>>8, i&255)
		fmt.Fprintf(&list, `"52:54:00:00:%02x:%02x",`, i>>8, i&255)
	}
	if _, err := redfish.ParseXMLData([]byte("<RIMP><HSI><SBSN>a</SBSN><NICS>" + x.String() + "</NICS></HSI></RIMP>")); !errors.Is(err, bmc.ErrUnreadable) {
		t.Errorf("xmldata: got %v", err)
	}
	c, _ := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/Systems/") {
			page(w, "", "/redfish/v1/Systems/1")
			return
		}
		fmt.Fprintf(w, `{"SerialNumber": "a", "HostCorrelation": {"HostMACAddress": [%s ""]}}`, list.String())
	})
	if _, err := c.Server(t.Context()); !errors.Is(err, bmc.ErrUnreadable) || !strings.Contains(err.Error(), "network cards") {
		t.Errorf("redfish: got %v", err)
	}
}

// TestMessages: an error has what the processor says, in the forms that services have.
func TestMessages(t *testing.T) {
	const one = `{"MessageId": "Base.1.8.PropertyUnknown", "Message": "The property X is unknown.", "Severity": "Warning"}`
	for _, tt := range []struct{ body, want string }{
		{`{"error": {"code": "Base.1.8.GeneralError", "@Message.ExtendedInfo": [` + one + `]}}`, "400 Bad Request (Base.1.8.PropertyUnknown: The property X is unknown.)"},
		{`{"error": {"@Message.ExtendedInfo": ` + one + `}}`, "(Base.1.8.PropertyUnknown: The property X is unknown.)"},
		{`{"error": {"@Message.ExtendedInfo": [` + one + `,` + one + `, {"Message": "No."}, {"MessageId": "Base.1.8.Success"}]}}`, "(Base.1.8.PropertyUnknown: The property X is unknown.; No.)"},
		{`{"Boot": {"BootSourceOverrideMode@Message.ExtendedInfo": [` + one + `]}}`, "(Base.1.8.PropertyUnknown: The property X is unknown.)"},
		{`{"Boot/BootSourceOverrideMode@Message.ExtendedInfo": [` + one + `]}`, "(Base.1.8.PropertyUnknown: The property X is unknown.)"},
		{`{"error": {"code": "Base.1.0", "message": "Broken."}}`, "(Base.1.0: Broken.)"},
		{`{"Messages": [{"MessageID": "Base.0.10.X"}]}`, "(Base.0.10.X)"},
		{`{"error": {"@Message.ExtendedInfo": ["No", null, [1]]}, "Boot": null}`, "400 Bad Request"},
		{`{"error": "no"}`, "400 Bad Request"}, {`[]`, "400 Bad Request"}, {`<html>`, "400 Bad Request"}, {``, "400 Bad Request"},
	} {
		c, _ := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, tt.body)
		})
		if _, err := c.Get(t.Context(), "/rest/v1"); !errors.Is(err, bmc.ErrRejected) || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.body, err, tt.want)
		}
	}
}
