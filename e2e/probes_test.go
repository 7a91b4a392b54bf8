package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// report is the result of a probe, which e2e/image/probe sends.
type report struct {
	From    string
	Round   string
	Results map[string]result
}

type result struct {
	Answers []string
	Failed  int
	Error   string
}

// round is the set of addresses that the probes try at a time, and the expected answers.
type round struct {
	mode     string            // of kube-proxy
	replicas map[string]string // their answers, by address
	service  string            // ClusterIP
	port     int               // of each node
	nobody   string            // ClusterIP of a Service without a replica
}

// proxyMode is the URL of kube-proxy's mode, for its own node.
const proxyMode = "http://127.0.0.1:10249/proxyMode"

func (r *round) targets(from string) []string {
	urls := []string{serviceURL(r.service), serviceURL(r.nobody)}
	for ip := range r.replicas {
		urls = append(urls, podURL(ip))
	}
	if onHost(from) {
		urls = append(urls, proxyMode)
	}
	return urls
}

func onHost(from string) bool     { return strings.HasSuffix(from, "/host") }
func serviceURL(ip string) string { return "http://" + ip + "/" }
func podURL(ip string) string     { return "http://" + ip + ":8080/" }

// everybody returns the answers of all replicas, sorted.
func (r *round) everybody() []string { return slices.Sorted(maps.Values(r.replicas)) }

// check returns an error if a report differs from the expected answers.
func (r *round) check(got report) error {
	if got.Round != r.mode {
		return fmt.Errorf("last reported on %q", got.Round)
	}
	want := map[string][]string{serviceURL(r.service): r.everybody()}
	for ip, answer := range r.replicas {
		want[podURL(ip)] = []string{answer}
	}
	if onHost(got.From) {
		want[proxyMode] = []string{r.mode}
	}
	for url, answers := range want {
		if res := got.Results[url]; res.Failed > 0 || !slices.Equal(res.Answers, answers) {
			return fmt.Errorf("%s: got %q, %d failed (%s), want %q", url, res.Answers, res.Failed, res.Error, answers)
		}
	}
	if res := got.Results[serviceURL(r.nobody)]; res.Failed == 0 || len(res.Answers) > 0 {
		return fmt.Errorf("nobody answers as %q", res.Answers)
	}
	return nil
}

// probes receives reports and answers with the addresses to try next.
type probes struct {
	mu      sync.Mutex
	round   *round
	reports map[string]report // the last ones, by sender
}

// begin starts another round.
func (p *probes) begin(r *round) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round, p.reports = r, map[string]report{}
}

// last returns the last report of a sender; empty without one.
func (p *probes) last(from string) report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reports[from]
}

// ServeHTTP records a report and answers with the addresses to try.
func (p *probes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var got report
	if err := json.NewDecoder(req.Body).Decode(&got); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	next := struct {
		Round   string   `json:"round"`
		Targets []string `json:"targets"`
	}{}
	p.mu.Lock()
	defer p.mu.Unlock()
	// A probe whose report is complete gets nothing to try: the others need the processor.
	if p.round != nil && p.round.check(p.reports[got.From]) != nil {
		p.reports[got.From] = got
		next.Round, next.Targets = p.round.mode, p.round.targets(got.From)
	}
	_ = json.NewEncoder(w).Encode(next) // a probe without an answer asks again
}

// TestCheckFinds proves that the checks of [TestServices] can fail.
func TestCheckFinds(t *testing.T) {
	r := &round{mode: "nftables", service: "10.96.0.7", nobody: "10.96.0.8",
		replicas: map[string]string{"10.244.0.2": "hello from a\n", "10.244.1.2": "hello from b\n"}}
	good := func() report {
		return report{From: "n1/host", Round: "nftables", Results: map[string]result{
			proxyMode:                 {Answers: []string{"nftables"}},
			"http://10.96.0.7/":       {Answers: []string{"hello from a\n", "hello from b\n"}},
			"http://10.96.0.8/":       {Failed: 2, Error: "connection refused"},
			"http://10.244.0.2:8080/": {Answers: []string{"hello from a\n"}},
			"http://10.244.1.2:8080/": {Answers: []string{"hello from b\n"}},
		}}
	}
	if err := r.check(good()); err != nil {
		t.Errorf("all is well: got %v", err)
	}
	for want, spoil := range map[string]func(*report){
		`last reported on "iptables"`:                  func(r *report) { r.Round = "iptables" },
		`proxyMode: got ["iptables"]`:                  func(r *report) { r.Results[proxyMode] = result{Answers: []string{"iptables"}} },
		`10.96.0.7/: got ["hello from a\n"], 0 failed`: func(r *report) { r.Results["http://10.96.0.7/"] = r.Results["http://10.244.0.2:8080/"] },
		`10.244.1.2:8080/: got ["hello from b\n"], 1 failed (x)`: func(r *report) {
			r.Results["http://10.244.1.2:8080/"] = result{Answers: []string{"hello from b\n"}, Failed: 1, Error: "x"}
		},
		`10.244.0.2:8080/: got []`: func(r *report) { delete(r.Results, "http://10.244.0.2:8080/") },
		`nobody answers`:           func(r *report) { delete(r.Results, "http://10.96.0.8/") },
	} {
		bad := good()
		spoil(&bad)
		if err := r.check(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
