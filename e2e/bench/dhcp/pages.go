package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"drover/e2e/bench/stats"
)

// pagesCommand makes this program the browsers of many people, who each have a page of drover
// open. The benchmark starts it in the servers' namespace, on the clients' processor.
const pagesCommand = "pages"

// pageServer is where drover has its page.
const pageServer = "http://127.0.0.1:8443"

// visits counts what the pages asked.
type visits struct {
	Events    atomic.Int64 // of streams: the page has changed
	Requests  atomic.Int64
	Unchanged atomic.Int64 // answered with 304
	Bytes     atomic.Int64 // of the other answers, as they were sent
	Failed    atomic.Int64
	Log       *log.Logger // of failures
}

// fail counts and prints a failure.
func (v *visits) fail(format string, args ...any) {
	v.Failed.Add(1)
	v.Log.Printf(format, args...)
}

// keepOpen opens pages, says so, and refreshes each as htmx does until standard input ends. Then it
// prints what became of them.
func keepOpen(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("bench-dhcp pages", flag.ContinueOnError)
	f.SetOutput(stderr)
	n := f.Int("n", 200, "how many `pages`")
	token := f.String("token", "", "`file` with the token")
	if err := f.Parse(args); err != nil {
		return err
	}
	secret, err := os.ReadFile(*token)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	count := visits{Log: log.New(stderr, "", 0)}
	var all sync.WaitGroup
	tokens, err := people(ctx, strings.TrimSpace(string(secret)), *n)
	if err != nil {
		return err
	}
	for i := range *n { // one after the other: drover closes connections of an address that opens too many at once
		opened := make(chan error)
		all.Go(func() {
			p, err := open(ctx, tokens[i], i, &count)
			opened <- err
			if err == nil {
				p.keep(ctx)
			}
		})
		if err := <-opened; err != nil {
			return err
		}
	}
	fmt.Fprintln(stdout, "open")
	count.Events.Store(0)
	count.Requests.Store(0)
	count.Unchanged.Store(0)
	count.Bytes.Store(0)
	_, _ = io.Copy(io.Discard, stdin) // its end is the sign
	cancel()
	all.Wait()
	return json.NewEncoder(stdout).Encode(map[string]int64{
		"events": count.Events.Load(), "requests": count.Requests.Load(), "unchanged": count.Unchanged.Load(), "bytes": count.Bytes.Load(), "failed": count.Failed.Load(),
	})
}

// openPage is a page that a browser of its own shows, with a connection for the page and one for
// the stream of its changes.
type openPage struct {
	path   string
	client *http.Client
	count  *visits
	tag    string        // of the page that is shown
	stream io.ReadCloser // its changes
}

// people makes tokens for viewers, one for each page, with the server's own token.
func people(ctx context.Context, token string, n int) (secrets []string, err error) {
	for i := range n {
		body := strings.NewReader(fmt.Sprintf(`{"name": "viewer-%d", "role": "viewer"}`, i))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, pageServer+"/api/v1/tokens", body)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		var made struct{ Token string }
		err = json.NewDecoder(resp.Body).Decode(&made)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusCreated {
			return nil, fmt.Errorf("token %d: %s, %w", i, resp.Status, err)
		}
		secrets = append(secrets, made.Token)
	}
	return secrets, nil
}

// pathOf returns the page that a person has open. Of ten pages five are the overview, four a list of
// nodes, each with another filter, order or place, and one a machine.
func pathOf(i int) string {
	switch n := i / 10; i % 10 {
	case 5:
		return fmt.Sprintf("/nodes?q=n%d", n+1)
	case 6:
		return fmt.Sprintf("/nodes?sort=-since&page=%d", n+1)
	case 7:
		return fmt.Sprintf("/nodes?state=booting&sort=address&page=%d", n+1)
	case 8:
		return fmt.Sprintf("/nodes?image=debian-12&page=%d", n+1)
	case 9:
		return fmt.Sprintf("/nodes/n%d", i)
	}
	return "/"
}

// open logs in, and opens a page.
func open(ctx context.Context, token string, i int, count *visits) (*openPage, error) {
	path := pathOf(i)
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &openPage{path: path, count: count, client: &http.Client{
		Jar: jar, Transport: &http.Transport{MaxConnsPerHost: 2, DisableCompression: true}, // as it comes: a browser unpacks it on another host
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	resp, err := p.client.PostForm(pageServer+"/login", url.Values{"token": {token}})
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	p.refresh(ctx)
	stream, err := p.get(ctx, "/events"+path)
	if err != nil {
		return nil, err
	}
	if stream.StatusCode != http.StatusOK {
		_ = stream.Body.Close()
		return nil, fmt.Errorf("the stream of %s: %s", path, stream.Status)
	}
	p.stream = stream.Body
	p.refresh(ctx) // a browser has a second connection by now, from the styles
	return p, nil
}

// keep refreshes a page when its stream says so. What comes during a refresh becomes one more.
func (p *openPage) keep(ctx context.Context) {
	defer p.client.CloseIdleConnections()
	defer p.stream.Close()
	changed := make(chan bool, 1)
	lines := bufio.NewScanner(p.stream)
	go func() {
		defer close(changed)
		for lines.Scan() {
			if lines.Text() != "event: changed" {
				continue
			}
			p.count.Events.Add(1)
			select {
			case changed <- true:
			default:
			}
		}
	}()
	for range changed {
		p.refresh(ctx)
	}
	if ctx.Err() == nil {
		p.count.fail("the stream of %s has ended: %v", p.path, lines.Err())
	}
}

// get asks for something as htmx does.
func (p *openPage) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, pageServer+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("HX-Request", "true")
	if p.tag != "" {
		req.Header.Set("If-None-Match", p.tag)
	}
	return p.client.Do(req)
}

// refresh asks for the page again.
func (p *openPage) refresh(ctx context.Context) {
	resp, err := p.get(ctx, p.path)
	if err != nil {
		if ctx.Err() == nil {
			p.count.fail("%v", err)
		}
		return
	}
	defer resp.Body.Close()
	n, _ := io.Copy(io.Discard, resp.Body)
	p.count.Requests.Add(1)
	p.count.Bytes.Add(n)
	tag := resp.Header.Get("ETag")
	switch {
	case resp.StatusCode == http.StatusNotModified:
		p.count.Unchanged.Add(1)
	case resp.StatusCode != http.StatusOK || tag == "": // also a session that is over
		p.count.fail("%s: %s, ETag %q", p.path, resp.Status, tag)
		return
	}
	p.tag = tag
}

// besidePages runs f while b.open pages of a server are open.
func (b *bench) besidePages(ctx context.Context, s server, f func() error) (err error) {
	if b.open == 0 {
		return f()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command("taskset", "-c", clientCPU, self, pagesCommand, "-n", strconv.Itoa(b.open), "-token", filepath.Join(b.dir, s.name, "state", "api.token"))
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, said, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = said, b.log
	p, err := b.servers.Start("pages", cmd)
	_ = said.Close() // the process has its own
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop(10*time.Second)) }()
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "open\n" {
		return fmt.Errorf("the pages did not open: %q, %w", line, err)
	}
	if err := f(); err != nil {
		return err
	}
	_ = in.Close()
	line, err := lines.ReadString('\n')
	if err != nil {
		return err
	}
	<-p.Done() // a signal before would be its end
	b.say("%d open pages: %s", b.open, strings.TrimSpace(line))
	if !strings.Contains(line, `"failed":0,`) {
		return fmt.Errorf("refreshes of pages failed: %s", line)
	}
	return nil
}

// measurePages measures what open pages cost DHCP: the peak of drover with declared nodes, and its
// latency, without pages and with them, in turn. The machines boot, so that the pages change. Each
// page is of another person.
func (b *bench) measurePages(ctx context.Context, w io.Writer) error {
	chosen, err := chooseServers("drover"+declared, false)
	if err != nil {
		return err
	}
	peaks, p99s := map[int][]float64{}, map[int][]float64{}
	for range b.rounds {
		for _, open := range []int{0, b.pages} {
			b.open = open
			try := func(purpose string) func(float64) (Step, error) {
				return func(rate float64) (Step, error) { return b.step(ctx, chosen[0], ownTool, purpose, rate, 0) }
			}
			common, err := steady(try(forLatency), commonRate)
			if err != nil {
				return err
			}
			peak, err := b.saturate(4*commonRate, try(forSaturation))
			if err != nil {
				return err
			}
			peaks[open], p99s[open] = append(peaks[open], peak.Rate), append(p99s[open], common.P99)
		}
	}
	without, with := stats.Median(peaks[0]), stats.Median(peaks[b.pages])
	fmt.Fprintf(w, "medians of %d rounds: without pages %.0f exchanges/s at saturation, p99 at %d/s %.2f ms; with %d open pages %.0f, %.2f ms\n",
		b.rounds, without, commonRate, stats.Median(p99s[0]), b.pages, with, stats.Median(p99s[b.pages]))
	checks := []stats.Check{stats.AtLeast(fmt.Sprintf("exchanges/s at saturation with %d open pages, share of those without", b.pages), with/without, 0.9)}
	fmt.Fprintln(w, checks[0])
	return stats.Failure(checks)
}
