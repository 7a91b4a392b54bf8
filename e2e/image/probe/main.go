// Probe tries addresses over HTTP, from where it runs, and reports what answers.
// The lab runs it on each node twice: in the network of the node and in that of
// a pod.
//
//	probe URL NAME
//
// It POSTs its last report to the URL, as NAME, and gets back what to try next:
//
//	{"from": "n1/pod", "round": "iptables", "results": {"http://10.96.0.80/": {"answers": ["hello from a\n", ...], "failed": 0}}}
//	{"round": "iptables", "targets": ["http://10.96.0.80/"]}
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"time"
)

// tries is how often each address is asked, each time by a connection of its
// own. One of two replicas behind a Service is missed by all of them once in
// two thousand times; then the next report has it.
const tries = 12

// pause is the time between reports: an emulated machine has other things to do.
const pause = 3 * time.Second

type (
	report struct {
		From    string            `json:"from"`
		Round   string            `json:"round"`
		Results map[string]result `json:"results"`
	}
	result struct {
		Answers []string `json:"answers"` // that differ
		Failed  int      `json:"failed"`
		Error   string   `json:"error,omitempty"` // the last one
	}
	orders struct {
		Round   string   `json:"round"`
		Targets []string `json:"targets"`
	}
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: probe URL NAME")
	}
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
		Timeout:   5 * time.Second,
	}
	last := report{From: os.Args[2], Results: map[string]result{}}
	for ; ; time.Sleep(pause) {
		next, err := exchange(client, os.Args[1], last)
		if err != nil {
			log.Print(err)
			continue
		}
		last.Round, last.Results = next.Round, map[string]result{}
		for _, url := range next.Targets {
			last.Results[url] = try(client, url)
		}
	}
}

// exchange hands in a report and gets orders.
func exchange(client *http.Client, url string, r report) (next orders, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return next, err
	}
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return next, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return next, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return next, json.NewDecoder(resp.Body).Decode(&next)
}

// try asks an address until it has been asked often enough, or was silent twice.
func try(client *http.Client, url string) (r result) {
	for range tries {
		answer, err := get(client, url)
		switch {
		case err != nil:
			r.Failed, r.Error = r.Failed+1, err.Error()
		case !slices.Contains(r.Answers, answer):
			r.Answers = append(r.Answers, answer)
		}
		if r.Failed > 1 {
			break
		}
	}
	slices.Sort(r.Answers)
	return r
}

func get(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return string(b), err
}
