package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// An API server belongs to a tenant, and may be hostile. These are the limits of its
// answers, in bytes of memory as a scanner estimates them. A page of 100 Nodes costs
// about 10 MiB, a CertificateSigningRequest about 12 KiB.
const (
	maxPage   = 32 << 20 // a page of a list
	maxPages  = 1 << 30  // all pages of a list that is read page by page
	maxListed = 64 << 20 // all pages of a list that is held as a whole
	maxNamed  = 4 << 20  // a list that selects one object by its name
	maxObject = 2 << 20  // any other answer, and each event of a watch; etcd stores objects up to 1.5 MiB
	maxStatus = 64 << 10 // an error, in bytes

	// All answers of an API server together. A new request waits until the rate is
	// kept again. An answer that exceeds the rate by more than answerBurst is refused:
	// many requests that are answered at the same time must not add up.
	answerRate  = 16 << 20 // per second
	answerBurst = 64 << 20

	// Events of all watches together. A room of 4 000 machines that boot makes about
	// 10 000 events in a few minutes.
	eventRate  = 200 // per second
	eventBurst = 10_000

	maxHeader     = 64 << 10
	streamBuffer  = 256 << 10 // of HTTP/2, for one answer
	connBuffer    = 8 << 20   // of HTTP/2, for all answers of a connection
	maxRetryAfter = 5         // seconds; client-go obeys this header up to ten times
)

// RefusedError is the error of an answer that drover does not read to its end.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "answer refused: " + e.Why }

// Limit makes a client with this config read only answers within the limits for the
// cluster, and never follow a redirect. Call it before the client is made.
func (c *Cluster) Limit(conf *rest.Config) {
	conf.UserAgent = "drover"
	conf.QPS, conf.Burst = requestRate, requestBurst
	conf.WarningHandler = rest.NoWarnings{}
	// No conf.Timeout: it would end watches. Each request has a context.
	conf.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext
	// The scanner reads JSON only. Compression would hide the size of an answer.
	conf.ContentType, conf.AcceptContentTypes = "application/json", "application/json"
	conf.DisableCompression = true
	conf.Wrap(func(next http.RoundTripper) http.RoundTripper {
		limitBuffers(next)
		return &limiter{cluster: c, next: &breaker{next: next, now: c.now, onSilent: c.noteSilence}}
	})
}

// limitBuffers limits what a connection holds of answers that nobody has read yet.
// net/http holds up to 4 MiB of each answer and 10 MiB of its header.
func limitBuffers(rt http.RoundTripper) {
	for {
		wrapper, ok := rt.(utilnet.RoundTripperWrapper)
		if !ok {
			break
		}
		rt = wrapper.WrappedRoundTripper()
	}
	if t, ok := rt.(*http.Transport); ok && rt != http.DefaultTransport {
		t.MaxResponseHeaderBytes = maxHeader
		t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connBuffer}
	}
}

// limiter is a transport that enforces the limits of answers.
type limiter struct {
	cluster *Cluster
	next    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (l *limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := l.wait(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	json, err := acceptable(resp)
	if err != nil {
		_ = resp.Body.Close()
		return nil, l.cluster.refuse(describe(r), err)
	}
	if after := resp.Header.Get("Retry-After"); after != "" {
		if s, err := strconv.Atoi(after); err != nil || s > maxRetryAfter {
			resp.Header.Set("Retry-After", strconv.Itoa(maxRetryAfter))
		}
	}
	resp.Body = newAnswer(l.cluster, r, resp, json)
	return resp, nil
}

// wait waits until the answers to earlier requests are within the rate again.
func (l *limiter) wait(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := l.cluster.rate.WaitN(limited, 1)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &RefusedError{Why: "the earlier ones were too large"}
}

// acceptable reports whether an answer is JSON, by its header. The error is for answers
// that no API server gives: a redirect could lead drover to any address, with its
// credentials, and other encodings need more memory than the scanner expects.
func acceptable(resp *http.Response) (json bool, err error) {
	if resp.StatusCode < 200 || resp.StatusCode/100 == 3 {
		return false, fmt.Errorf("status %d leads elsewhere", resp.StatusCode)
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return false, fmt.Errorf("its encoding is %.40q, and none was asked for", encoding)
	}
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		return true, nil // client-go takes it for what it asked for
	}
	media, _, err := mime.ParseMediaType(kind)
	switch {
	case err != nil:
		return false, fmt.Errorf("its type is %.80q", kind)
	case media == "application/json":
		return true, nil
	case strings.HasPrefix(media, "text/"): // of a proxy; client-go decodes none
		return false, nil
	}
	return false, fmt.Errorf("its type is %.80q, and JSON was asked for", kind)
}

// describe returns a request without its parameters.
func describe(r *http.Request) string { return r.Method + " " + r.URL.Path }

// answer is the body of an answer. It ends with an error when it exceeds a limit.
type answer struct {
	io.ReadCloser
	cluster *Cluster
	request *http.Request
	limit   int
	json    bool     // else text of a proxy, whose cost is its length
	list    *listing // of which the answer is a page; may be nil
	page    int      // memory of this page so far
	reading reading
	scanner scanner
	err     error
}

func newAnswer(c *Cluster, r *http.Request, resp *http.Response, json bool) *answer {
	list, _ := r.Context().Value(listingKey{}).(*listing)
	a := &answer{ReadCloser: resp.Body, cluster: c, request: r, json: json, limit: maxObject, list: list}
	switch {
	case resp.StatusCode >= http.StatusBadRequest, !json:
		a.limit, a.list, a.json = maxStatus, nil, false
	case list != nil:
		a.limit = list.left
	default:
		a.scanner.stream = isWatch(r)
	}
	if !a.scanner.stream && resp.ContentLength > int64(a.limit) {
		a.err = c.refuse(describe(r), fmt.Errorf("it has %d bytes", resp.ContentLength))
	}
	return a
}

// Read implements [io.Reader].
func (a *answer) Read(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	if a.err = a.reading.grow(a.request.Context(), a.cluster, a.page); a.err != nil {
		return 0, a.err
	}
	n, err := a.ReadCloser.Read(p)
	a.reading.whole = errors.Is(err, io.EOF)
	if failed := a.count(p[:n]); failed != nil {
		a.err = a.cluster.refuse(describe(a.request), failed)
		_ = a.Close() // the server need not send the rest
		return 0, a.err
	}
	return n, err
}

// count adds a piece of the answer to all that is limited.
func (a *answer) count(text []byte) error {
	cost, events := len(text), 0
	if a.json {
		var err error
		if cost, events, err = a.scanner.scan(text, a.limit); err != nil {
			return err
		}
	} else if a.limit -= len(text); a.limit < 0 {
		return errors.New("it is too long for an error")
	}
	if a.list != nil {
		a.list.left -= cost
		a.page += cost
	}
	return a.cluster.charge(cost, events)
}

// Close implements [io.Closer]. Nobody reads after it.
func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	if a.reading.end() && a.err == nil && !errors.Is(a.request.Context().Err(), context.Canceled) {
		_ = a.cluster.refuse(describe(a.request), errors.New("it takes too long for its size")) // for the record
	}
	return err
}
