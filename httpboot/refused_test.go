package httpboot_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/httpboot"
	"drover/pools"
)

// refusals counts the calls of the hook.
type refusals struct {
	mu  sync.Mutex
	got map[httpboot.Refusal]int
}

func (r *refusals) count(reason httpboot.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.got == nil {
		r.got = map[httpboot.Refusal]int{}
	}
	r.got[reason]++
}

// take returns the counts since its last call, once their sum is n. The
// hooks are called after the answer.
func (r *refusals) take(t testing.TB, n int) map[httpboot.Refusal]int {
	t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		sum := 0
		for _, k := range r.got {
			sum += k
		}
		if sum >= n || time.Since(start) > patience {
			defer r.mu.Unlock()
			got := r.got
			r.got = nil
			return got
		}
		r.mu.Unlock()
	}
}

// only checks that one request was refused, for this reason.
func (r *refusals) only(t testing.TB, want httpboot.Refusal) {
	t.Helper()
	if got := r.take(t, 1); len(got) != 1 || got[want] != 1 {
		t.Errorf("counted %v, want %s once", got, want)
	}
}

// dialFrom connects from an address of this host.
func dialFrom(t testing.TB, base, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	c, err := d.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// answer reads an answer, which may be to nothing that was a request.
func answer(t testing.TB, c net.Conn) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// TestRefused holds, over real sockets, what each kind of request that must not
// get what it wants is answered with, and that it is counted.
func TestRefused(t *testing.T) {
	loaders := t.TempDir()
	writeFile(t, filepath.Join(loaders, "snponly.efi"), []byte("loader"))
	if err := os.Mkdir(filepath.Join(loaders, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	var refused refusals
	w := newWorld(t, func(w *world) {
		w.Loaders, w.OnRefused = loaders, refused.count
		w.HeaderTimeout, w.BodyTimeout, w.MaxEvents = time.Second, time.Second, 1
	})
	n := w.boot(t, macBIOS, "127.0.0.1")
	n.ask(t, "config", &pools.NodeConfig{}) // the boot is bound to its key
	thief, err := pools.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" }
	post := func(path, nonce, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nDrover-Nonce: %s\r\nContent-Length: %d\r\n\r\n%s", path, nonce, len(body), body)
	}
	own := "/node/" + macBIOS.Dashed()
	base := w.serve(t, nil)
	reported := dial(t, base)
	fmt.Fprint(reported, post(own+"/events", n.nonce, `{"step":"init","uptime":1,"error":"e"}`)) // the only one that it may report
	if resp, body := answer(t, reported); resp.StatusCode != 204 {
		t.Fatalf("got status %d, %s; want 204", resp.StatusCode, body)
	}
	for _, tt := range []struct {
		name, from, send string
		status           int // 0: the connection is closed without an answer
		want             httpboot.Refusal
	}{
		{"dot segments", "", get("/loaders/../../etc/passwd"), 404, httpboot.RefusedPath},
		{"dot segments, encoded", "", get("/loaders/%2e%2e/%2e%2e/etc/passwd"), 404, httpboot.RefusedPath},
		{"slashes, encoded", "", get("/loaders/..%2F..%2Fetc%2Fpasswd"), 404, httpboot.RefusedPath},
		{"NUL", "", get("/loaders/snponly.efi%00"), 404, httpboot.RefusedPath},
		{"backslash", "", get(`/loaders/..\..\etc\passwd`), 404, httpboot.RefusedPath},
		{"backslash, encoded", "", get("/loaders/..%5C..%5Cetc%5Cpasswd"), 404, httpboot.RefusedPath},
		{"dot segments in an image", "", get("/images/debian-12/%2e%2e/kernel"), 404, httpboot.RefusedPath},
		{"encoded twice", "", get("/loaders/%252e%252e%252fsnponly.efi"), 404, httpboot.RefusedNotFound},
		{"directory", "", get("/loaders/"), 404, httpboot.RefusedNotFound},
		{"directory below", "", get("/loaders/sub"), 404, httpboot.RefusedNotFound},
		{"directory of images", "", get("/images/debian-12/"), 404, httpboot.RefusedNotFound},
		{"root", "", get("/"), 404, httpboot.RefusedNotFound},
		{"asterisk", "", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404, httpboot.RefusedPath},
		{"method", "", "DELETE /boot.ipxe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405, httpboot.RefusedMethod},
		{"foreign script", "127.0.0.2", get("/boot/" + macBIOS.Dashed()), 403, httpboot.RefusedAddress},
		{"foreign config", "127.0.0.2", post(own+"/config", n.nonce, keyBody(n.key)), 403, httpboot.RefusedAddress},
		{"foreign join", "127.0.0.9", post(own+"/join", n.nonce, keyBody(n.key)), 403, httpboot.RefusedAddress},
		{"foreign events", "127.0.0.9", post(own+"/events", n.nonce, "{}"), 403, httpboot.RefusedAddress},
		{"unknown MAC", "", get("/boot/" + macForeign.Dashed()), 404, httpboot.RefusedMAC},
		{"no nonce", "", post(own+"/config", "", keyBody(n.key)), 403, httpboot.RefusedNonce},
		{"nonce of no boot", "", post(own+"/config", strings.Repeat("f", 32), keyBody(n.key)), 403, httpboot.RefusedNonce},
		{"replayed nonce, config", "", post(own+"/config", n.nonce, keyBody(thief)), 403, httpboot.RefusedClaimed},
		{"replayed nonce, join", "", post(own+"/join", n.nonce, keyBody(thief)), 403, httpboot.RefusedClaimed},
		{"large body", "", post(own+"/config", n.nonce, strings.Repeat("x", pools.MaxNodeRequest+1)), 413, httpboot.RefusedBody},
		{"no JSON", "", post(own+"/config", n.nonce, "x"), 400, httpboot.RefusedMalformed},
		{"events without end", "", post(own+"/events", n.nonce, `{"step":"init","uptime":1,"error":"another"}`), 429, httpboot.RefusedEvents},
		{"large header", "", "GET /boot.ipxe HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", 431, httpboot.RefusedHeader},
		{"long line", "", get("/" + strings.Repeat("x", 64<<10)), 431, httpboot.RefusedHeader},
		{"no HTTP", "", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, httpboot.RefusedHeader},
		{"no host", "", "GET /boot.ipxe HTTP/1.1\r\n\r\n", 400, httpboot.RefusedHeader},
		{"header that trickles", "", "GET /boot.ipxe HTTP/1.1\r\nHost: x\r\nX-Slow: ", 0, httpboot.RefusedHeader},
		{"line that trickles", "", "G", 400, httpboot.RefusedHeader},
		{"body that trickles", "", "POST " + own + "/config HTTP/1.1\r\nHost: x\r\nDrover-Nonce: " + n.nonce + "\r\nContent-Length: 100\r\n\r\n{", 408, httpboot.RefusedSlowBody},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.from == "" {
				tt.from = "127.0.0.1"
			}
			c := dialFrom(t, base, tt.from)
			go func() { _, _ = io.WriteString(c, tt.send) }() // the server may close before it has read all
			if tt.status == 0 {
				closed(t, c)
				refused.only(t, tt.want)
				return
			}
			resp, body := answer(t, c)
			if resp.StatusCode != tt.status {
				t.Errorf("got status %d, %s; want %d", resp.StatusCode, body, tt.status)
			}
			if strings.Contains(body, "root:") || strings.Contains(body, loaders) {
				t.Errorf("got %s", body)
			}
			refused.only(t, tt.want)
		})
	}
}

// A trickle that never ends does not move the deadline.
func TestSlowlorisIsCut(t *testing.T) {
	var refused refusals
	w := newWorld(t, func(w *world) { w.HeaderTimeout, w.OnRefused = 200*time.Millisecond, refused.count })
	c := dial(t, w.serve(t, nil))
	fmt.Fprint(c, "GET /boot.ipxe HTTP/1.1\r\nHost: x\r\n")
	stop := make(chan bool)
	var trickle sync.WaitGroup
	trickle.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				if _, err := fmt.Fprintf(c, "X-%d: x\r\n", i); err != nil {
					return
				}
			}
		}
	})
	closed(t, c)
	close(stop)
	trickle.Wait()
	refused.only(t, httpboot.RefusedHeader)
}

// A client that reads nothing is cut off.
func TestSlowReader(t *testing.T) {
	var refused refusals
	w := newWorld(t, func(w *world) {
		w.StallTimeout, w.OnRefused = 50*time.Millisecond, refused.count
		w.bigImage(t, 64<<20)
	})
	c := dial(t, w.serve(t, nil))
	if err := c.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET %sroot.squashfs HTTP/1.1\r\nHost: x\r\n\r\n", imagePath)
	refused.only(t, httpboot.RefusedSlowReader)
}

// bigImage makes the root image a file of that many zeros, which takes no room.
func (w *world) bigImage(t testing.TB, size int64) {
	t.Helper()
	img := w.images["debian-12"]
	img.Squashfs.Size = size
	path := filepath.Join(img.Dir, img.Squashfs.Name)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	w.images["debian-12"], w.images["debian-12@sha256:"+generation] = img, img
}

// A surplus connection of an address gets an answer of HTTP; far above the limit
// it is closed at once.
func TestRefusedConnections(t *testing.T) {
	var refused refusals
	w := newWorld(t, func(w *world) { w.MaxConnsPerAddress, w.OnRefused = 2, refused.count })
	base := w.serve(t, nil)
	const request = "GET /boot.ipxe HTTP/1.1\r\nHost: x\r\n\r\n"
	for range 2 {
		c := dial(t, base)
		fmt.Fprint(c, request)
		if resp, _ := answer(t, c); resp.StatusCode != 200 {
			t.Fatalf("got status %d, want 200", resp.StatusCode)
		}
	}
	third := dial(t, base)
	fmt.Fprint(third, request)
	resp, body := answer(t, third)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "5" || !resp.Close {
		t.Errorf("got status %d, Retry-After %q, closed %v, %s; want 429, 5 and a close", resp.StatusCode, resp.Header.Get("Retry-After"), resp.Close, body)
	}
	refused.only(t, httpboot.RefusedAddressConns)
	closed(t, third)
	dial(t, base) // these two would be told as well
	dial(t, base)
	closed(t, dial(t, base))
	refused.only(t, httpboot.RefusedAddressConns)
	other := dialFrom(t, base, "127.0.0.5")
	fmt.Fprint(other, request)
	if resp, _ := answer(t, other); resp.StatusCode != 200 {
		t.Errorf("another address: got status %d, want 200", resp.StatusCode)
	}
}

// A server that is full still serves firmware, which would boot from elsewhere,
// and asks other clients to come again.
func TestFullServer(t *testing.T) {
	var refused refusals
	w := newWorld(t, func(w *world) { w.MaxConns, w.OnRefused = 20, refused.count })
	base := w.serve(t, nil)
	ask := func(path string) (*http.Response, string, net.Conn) {
		t.Helper()
		c := dial(t, base)
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		resp, body := answer(t, c)
		return resp, body, c
	}
	for range 20 {
		if resp, _, _ := ask("/boot.ipxe"); resp.StatusCode != 200 || resp.Close {
			t.Fatalf("got status %d, closed %v; want 200 and the connection kept", resp.StatusCode, resp.Close)
		}
	}
	for _, path := range []string{"/boot.ipxe", imagePath + "kernel", "/boot/" + macBIOS.Dashed()} {
		resp, _, c := ask(path)
		if resp.StatusCode != 200 || !resp.Close {
			t.Errorf("%s: got status %d, closed %v; want 200 and a close", path, resp.StatusCode, resp.Close)
		}
		closed(t, c)
	}
	resp, body, _ := ask(imagePath + "root.squashfs")
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "5" {
		t.Errorf("got status %d, Retry-After %q, %s; want 503 and 5", resp.StatusCode, resp.Header.Get("Retry-After"), body)
	}
	refused.only(t, httpboot.RefusedConns)
}

// closed waits until the server has closed a connection.
func closed(t testing.TB, c net.Conn) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the connection is open: %v", err)
	}
}

// The queue for images, as clients see it.
func TestImageQueue(t *testing.T) {
	var mu sync.Mutex
	var admitted []httpboot.Request
	most, waiting := 0, 0
	done := make(chan bool, 100)
	const size = 32 << 20 // more than the buffers of sockets
	w := newWorld(t, func(w *world) {
		w.MaxImages = 1
		w.bigImage(t, size)
		w.OnQueue = func(r, q int) {
			mu.Lock()
			defer mu.Unlock()
			most, waiting = max(most, r), q
		}
		w.OnRequest = func(r httpboot.Request) {
			mu.Lock()
			defer mu.Unlock()
			if r.Admitted {
				admitted = append(admitted, r)
			}
			done <- true
		}
	})
	base := w.serve(t, nil)
	root := func(from string, header string) net.Conn {
		t.Helper()
		c := dialFrom(t, base, from)
		fmt.Fprintf(c, "GET %sroot.squashfs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", imagePath, header)
		return c
	}
	head := func(c net.Conn) *http.Response {
		t.Helper()
		resp, err := http.ReadResponse(bufio.NewReaderSize(c, 1024), nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	first := root("127.0.0.1", "")
	if got := head(first).StatusCode; got != 200 {
		t.Fatalf("got status %d, want 200", got)
	}
	asked := time.Now()
	for place, from := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3"} {
		resp := head(root(from, "Drover-Wait: 0\r\n"))
		want := fmt.Sprint(place%2 + 1)
		if resp.StatusCode != 503 || resp.Header.Get(pools.PlaceHeader) != want || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: got status %d, place %q, Retry-After %q; want 503, %s and 1", from, resp.StatusCode, resp.Header.Get(pools.PlaceHeader), resp.Header.Get("Retry-After"), want)
		}
	}
	// Nothing else is behind it, and the node that fetches may resume.
	for _, path := range []string{"/boot/" + macUEFI.Dashed(), imagePath + "kernel", imagePath + "initrd"} {
		c := dialFrom(t, base, "127.0.0.2")
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path)
		if resp, _ := answer(t, c); resp.StatusCode != 200 {
			t.Errorf("%s: got status %d, want 200", path, resp.StatusCode)
		}
	}
	if resp, body := answer(t, root("127.0.0.1", fmt.Sprintf("Range: bytes=%d-\r\n", size-4))); resp.StatusCode != 206 || len(body) != 4 {
		t.Errorf("resume: got status %d and %d bytes, want 206 and 4", resp.StatusCode, len(body))
	}
	if resp := head(root("127.0.0.1", "")); resp.StatusCode != 503 {
		t.Errorf("the whole file twice: got status %d, want 503", resp.StatusCode)
	}
	// The next in line is held, and gets its turn once the first is done.
	second := root("127.0.0.2", "")
	if _, err := io.Copy(io.Discard, first); err != nil {
		t.Fatal(err)
	}
	resp, body := answer(t, second)
	if resp.StatusCode != 200 || len(body) != size {
		t.Errorf("the second: got status %d and %d bytes", resp.StatusCode, len(body))
	}
	if resp, body := answer(t, root("127.0.0.3", "")); resp.StatusCode != 200 || len(body) != size {
		t.Errorf("the third: got status %d and %d bytes", resp.StatusCode, len(body))
	}
	kept := time.Since(asked) < 20*time.Second // as long as a position is kept for a client that does not ask
	for range 12 {
		wait(t, done, "the end of a request")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(admitted) != 3 || admitted[0].Position != 0 || admitted[1].Position != 1 || kept && admitted[2].Position != 2 {
		t.Errorf("got %+v, want three that were admitted, from positions 0, 1 and 2 (%v)", admitted, kept)
	}
	if most != 1 || waiting != 0 {
		t.Errorf("%d transfers at a time, %d wait; want 1 and 0", most, waiting)
	}
	if bytes.Contains([]byte(w.log.String()), []byte("position=1 waited=0s")) {
		t.Error("those who only ask are in the log")
	}
}
