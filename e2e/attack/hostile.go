package attack

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drover/e2e/netns"
)

// Hostile is a server whose answers harm a client that does not limit them.
type Hostile struct {
	Name   string
	Answer http.HandlerFunc
}

// ServeHTTP serves on an address of a namespace until the test ends, and returns the
// counter of requests.
func ServeHTTP(t testing.TB, n netns.Namespace, address string, h http.Handler) *atomic.Int64 {
	t.Helper()
	var l net.Listener
	n.In(t, func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	var requests atomic.Int64
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		h.ServeHTTP(w, r)
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close() // all connections
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return &requests
}

// node is an object of a list of Nodes.
func node(i int) string {
	return fmt.Sprintf(`{"metadata":{"name":"n%d","uid":"%d","labels":{"drover/managed":"true"}}},`, i, i)
}

// APIServers returns hostile API servers of Kubernetes: lists without end, bombs, and
// errors without end.
func APIServers() []Hostile {
	const head = `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`
	return []Hostile{
		{"a list without end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, head, node)
		}},
		{"a gzip bomb of a list", bomb(head, node(1), `{}]}`)},
		{"pages without end", func(w http.ResponseWriter, r *http.Request) {
			page, _ := strconv.Atoi(r.URL.Query().Get("continue")) // none: the first
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"%d"},"items":[`, page+1)
			for i := range 5000 {
				if _, err := io.WriteString(w, node(page*5000+i)); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, node(page*5000 + 4999)[:len(node(page*5000+4999))-1]+`]}`) // it may be gone
		}},
		{"a name without end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, head+`{"metadata":{"name":"`, func(int) string { return "aaaaaaaaaaaaaaaa" })
		}},
		{"an error without end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			endless(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"`, func(int) string { return "no, not at all; " })
		}},
		{"brackets without end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, head, func(int) string { return `[{"a":` })
		}},
		{"a watch event without end", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Query().Has("watch") {
				endless(w, `{"type":"ADDED","object":{"metadata":{"name":"`, func(int) string { return "aaaaaaaaaaaaaaaa" })
				return
			}
			kind := "NodeList"
			for part, k := range map[string]string{"certificatesigningrequests": "CertificateSigningRequestList", "leases": "LeaseList", "secrets": "SecretList"} {
				if strings.Contains(r.URL.Path, part) {
					kind = k
				}
			}
			fmt.Fprintf(w, `{"kind":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind)
		}},
		{"a redirect without end", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
		}},
		{"a byte each second", drip(head)},
	}
}

// Chassis returns hostile chassis managers with a REST interface.
func Chassis() []Hostile {
	const head = `{"Members":[`
	member := func(i int) string { return fmt.Sprintf(`{"href":"/rest/v1/Systems/C%dN1"},`, i) }
	return []Hostile{
		{"pages without end", func(w http.ResponseWriter, r *http.Request) { // H12
			fmt.Fprintf(w, `{"Members":[],"Members@odata.nextLink":%q}`, r.URL.Path+"x")
		}},
		{"pages with long paths", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"Members":[],"Members@odata.nextLink":%q}`, "/"+strconv.FormatInt(time.Now().UnixNano(), 36)+strings.Repeat("x", 64<<10))
		}},
		{"pages of strangers", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"links":{"Member":[%s{}]},"Members@odata.nextLink":%q}`,
				strings.Repeat(fmt.Sprintf(`{"href":"/%d"},`, time.Now().UnixNano()), 1000), r.URL.Path+"x")
		}},
		{"a collection without end", func(w http.ResponseWriter, _ *http.Request) { endless(w, head, member) }},
		{"a gzip bomb", bomb(head, member(1), `{}]}`)},
		{"brackets without end", func(w http.ResponseWriter, _ *http.Request) {
			endless(w, head, func(int) string { return `[{"a":` })
		}},
		{"an error without end", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			endless(w, `{"Messages":["`, func(int) string { return "no, not at all; " })
		}},
		{"a byte each second", drip(head)},
	}
}

// endless writes head and then items until the client is gone.
func endless(w io.Writer, head string, item func(i int) string) {
	_, err := io.WriteString(w, head)
	for i := 0; err == nil; {
		var b bytes.Buffer
		for b.Len() < 32<<10 {
			b.WriteString(item(i))
			i++
		}
		_, err = w.Write(b.Bytes())
	}
}

// bomb answers with compressed items of some 200 MB, whether the client accepts that or
// not.
func bomb(head, item, tail string) http.HandlerFunc {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	items := []byte(strings.Repeat(item, 1000))
	_, err := io.WriteString(z, head)
	for range 200 << 20 / len(items) {
		if err == nil {
			_, err = z.Write(items)
		}
	}
	if err == nil {
		_, err = io.WriteString(z, tail)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err) // a buffer takes everything
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes()) // the client may be gone
	}
}

// drip answers with a byte each second.
func drip(head string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; ; i++ {
			if _, err := io.WriteString(w, head[i%len(head):i%len(head)+1]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Second):
			}
		}
	}
}
