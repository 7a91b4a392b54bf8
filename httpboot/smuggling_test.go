package httpboot_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestTwoLengths: a request with both lengths gets one answer, and the connection closes: what
// follows could be the body for a proxy before drover (RFC 9112, section 6.1).
func TestTwoLengths(t *testing.T) {
	w := newWorld(t, nil)
	url := w.serve(t, nil)
	for _, headers := range []string{
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 30\r\n", "Transfer-Encoding: chunked\r\n",
	} {
		for _, start := range []string{"GET /loaders/none", "POST /node/" + macBIOS.Dashed() + "/events"} {
			c := dialFrom(t, url, "127.0.0.1")
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\n%s\r\n0\r\n\r\nGET /loaders/second HTTP/1.1\r\nHost: x\r\n\r\n", start, headers)
			_ = c.SetReadDeadline(time.Now().Add(patience))
			in := bufio.NewReader(c)
			resp, err := http.ReadResponse(in, &http.Request{Method: strings.Fields(start)[0]})
			if err != nil {
				t.Fatalf("%s with %q: %v", start, headers, err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Error(err)
			}
			if _, err := in.ReadByte(); !errors.Is(err, io.EOF) || !resp.Close {
				t.Errorf("%s with %q: %s, then %v, want the end of the connection", start, headers, resp.Status, err)
			}
		}
	}
}
