// Package peers keeps the servers of one farm (server.also) in step. Each sends the others a small
// request now and then: digests of its config, so that a difference is told before a machine meets
// it, and which boots nodes have claimed or ended there. [Peers.Run] asks, [Peers.Answer] answers.
//
// Requests and answers are authenticated by nodes.key, which all servers of a farm have, and hold no
// secret. A server that does not answer holds nothing up.
//
// The package does not know what a config is, nor how boots are kept.
package peers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/boots"
)

const (
	every     = 15 * time.Second // between two requests to a server
	tryFor    = 5 * time.Second  // one request
	maxClock  = 5 * time.Minute  // by which a clock may differ for a request to be read at all
	perTry    = 200              // claims of a request
	maxKept   = 20_000           // claims that wait for a server
	maxText   = 300              // bytes of what a server says of an error
	maxDigest = 32               // digests of a message
)

// Peers asks and answers the other servers. Set its fields before use.
type Peers struct {
	Key     []byte // of nodes.key
	ID      string // of this server; each has another one
	Version string
	Others  []netip.AddrPort                 // their listeners
	IsOwn   func(netip.Addr) bool            // whether an address is one of this server: it is left out
	Digests func() map[string]string         // what all servers must have alike, by its name
	Claims  func() []boots.Claim             // that a server needs to know that has just started
	Told    func(from string, c boots.Claim) // takes a claim that another server tells
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
	HTTP    *http.Client     // nil: one without proxy and redirects

	mu       sync.Mutex
	instance string // of this process
	peers    []*peer
}

// peer is another server.
type peer struct {
	url      string
	own      bool   // it is this server
	instance string // the process that has all claims but those below
	wake     chan struct{}
	claims   map[pools.MAC]boots.Claim // that it does not know

	asked   bool
	failed  int    // tries since it answered
	problem string // why it cannot stand in; empty: it can
}

// message is a request, or the answer to one.
type message struct {
	Time     time.Time         `json:"time"`
	Server   string            `json:"server"`
	Instance string            `json:"instance"`
	Version  string            `json:"version"`
	Digests  map[string]string `json:"digests"`
	Claims   []boots.Claim     `json:"claims,omitempty"` // of a request
}

// Status is how another server was found last.
type Status struct {
	Server  string // its URL
	Answers bool
	Problem string // why a boot could not go on there; empty: it could
}

func (p *Peers) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// all returns the other servers. The caller holds the lock.
func (p *Peers) all() []*peer {
	if p.instance == "" {
		p.instance = rand.Text()
		for _, a := range p.Others {
			p.peers = append(p.peers, &peer{url: "http://" + pools.ServerText(a), wake: make(chan struct{}, 1), claims: map[pools.MAC]boots.Claim{}})
		}
	}
	return p.peers
}

// Tell keeps a claim for the other servers, which are told at once.
func (p *Peers) Tell(c boots.Claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, to := range p.all() {
		if _, known := to.claims[c.MAC]; !to.own && (known || len(to.claims) < maxKept) {
			to.claims[c.MAC] = c
			to.wakeUp()
		}
	}
}

// wakeUp has the server asked now.
func (t *peer) wakeUp() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run asks the other servers until ctx ends.
func (p *Peers) Run(ctx context.Context) error {
	if p.HTTP == nil {
		p.HTTP = &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 2 * every, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	p.mu.Lock()
	all := p.all()
	p.mu.Unlock()
	var running sync.WaitGroup
	for i, to := range all {
		if addr := p.Others[i].Addr(); !p.IsOwn(addr) {
			running.Go(func() { p.follow(ctx, to, addr) })
		}
	}
	running.Wait()
	<-ctx.Done()
	p.HTTP.CloseIdleConnections()
	return nil
}

// follow asks one server until ctx ends, or until it turns out to be this one.
func (p *Peers) follow(ctx context.Context, to *peer, addr netip.Addr) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		for more := true; more && ctx.Err() == nil; {
			var err error
			more, err = p.ask(ctx, to)
			p.found(to, err)
		}
		p.mu.Lock()
		to.own = to.own || p.IsOwn(addr) // an address that came since
		if to.own {
			to.claims, to.problem = nil, ""
		}
		own := to.own
		p.mu.Unlock()
		if own {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-to.wake:
		}
	}
}

// ask sends one request, and reports whether there are more claims.
func (p *Peers) ask(ctx context.Context, to *peer) (more bool, err error) {
	p.mu.Lock()
	claims := to.take(p.now())
	p.mu.Unlock()
	answer, err := p.exchange(ctx, to, p.message(claims))
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		to.putBack(claims)
		return false, err
	}
	if answer.Instance == p.instance {
		to.own = true
		return false, nil
	}
	if answer.Instance != to.instance {
		to.instance = answer.Instance
		to.putBack(p.Claims())
	}
	return len(to.claims) > 0, p.compare(answer)
}

// take takes claims out, but for those that are too old to matter. The caller holds the lock.
func (t *peer) take(now time.Time) (claims []boots.Claim) {
	for mac, c := range t.claims {
		if len(claims) == perTry {
			break
		}
		delete(t.claims, mac)
		if now.Sub(c.Issued) < 24*time.Hour {
			claims = append(claims, c)
		}
	}
	return claims
}

// putBack keeps claims that the server does not know, unless there is a newer one of a machine.
func (t *peer) putBack(claims []boots.Claim) {
	for _, c := range claims {
		if _, newer := t.claims[c.MAC]; !newer {
			t.claims[c.MAC] = c
		}
	}
}

func (p *Peers) message(claims []boots.Claim) message {
	digests := p.Digests()
	return message{Time: p.now().UTC(), Server: p.ID, Instance: p.instance, Version: p.Version, Digests: digests, Claims: claims}
}

// errDiffers is the error of a server that answers, and is not like this one.
type errDiffers struct{ error }

// compare returns an error that says what is different at another server.
func (p *Peers) compare(m message) error {
	skew := p.now().Sub(m.Time).Abs()
	switch {
	case m.Server == p.ID:
		return errDiffers{errors.New("it has the server.id of this one: its state directory is a copy; stop it, remove server.id there, and start it again")}
	case skew > boots.MaxSkew:
		return errDiffers{fmt.Errorf("its clock differs by %s, and a boot does not go on there with more than %s: synchronize both clocks", skew.Round(time.Second), boots.MaxSkew)}
	}
	var differ []string
	for name, digest := range p.Digests() {
		if m.Digests[name] != digest {
			differ = append(differ, name)
		}
	}
	if m.Version != p.Version {
		differ = append(differ, fmt.Sprintf("version (%s there, %s here)", printable.Line(m.Version, 40), p.Version))
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	return errDiffers{fmt.Errorf("it differs in %q: a boot that goes on there gets what that server has", differ)}
}

// found records how a server was found, and logs a change. One that does not answer once may be
// about to start.
func (p *Peers) found(to *peer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to.own {
		return
	}
	before, first := to.problem, !to.asked
	to.asked = true
	_, differs := errors.AsType[errDiffers](err)
	switch {
	case err == nil:
		to.failed, to.problem = 0, ""
	case differs:
		to.failed, to.problem = 0, err.Error()
	case to.failed == 0:
		to.failed = 1
		return
	default:
		to.failed++
		to.problem = "it does not answer: " + err.Error()
	}
	switch {
	case to.problem != "" && to.problem != before:
		p.Log.Warn("another server cannot stand in for this one", "server", to.url, "err", to.problem)
	case to.problem == "" && (before != "" || first):
		p.Log.Info("another server stands in for this one", "server", to.url)
	}
}

// Status returns how the other servers were found last.
func (p *Peers) Status() (all []Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, to := range p.all() {
		if !to.own && to.asked {
			all = append(all, Status{Server: to.url, Answers: to.failed == 0, Problem: to.problem})
		}
	}
	return all
}

// exchange sends a message, and returns the answer.
func (p *Peers) exchange(ctx context.Context, to *peer, m message) (answer message, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url+pools.PeersPath, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	signature := p.sign("request", "", body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(pools.SignatureHeader, signature)
	resp, err := p.HTTP.Do(req)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, pools.MaxPeerBody))
	switch {
	case err != nil:
		return answer, err
	case resp.StatusCode == http.StatusNotFound:
		return answer, errDiffers{errors.New("it answers 404: set server.also there, too, or update it")}
	case resp.StatusCode != http.StatusOK:
		return answer, errDiffers{fmt.Errorf("it answers %s: %s", resp.Status, printable.Line(string(got), maxText))}
	case !p.signed("answer", signature, got, resp.Header.Get(pools.SignatureHeader)):
		return answer, errDiffers{errors.New("its answer is not signed with nodes.key of this server: another host has its address, or it has another key")}
	}
	return answer, json.Unmarshal(got, &answer)
}

// The errors of [Peers.Answer]. The texts are for the client.
var (
	errUnsigned  = errors.New("the request is not signed with nodes.key of this server")
	errMalformed = errors.New("the request is not that of a server of this version")
)

// Answer answers a request of another server, with a signature. An error is for a request that is
// none of a server with the same key and time.
func (p *Peers) Answer(body []byte, signature string) (answer []byte, signed string, err error) {
	if !p.signed("request", "", body, signature) {
		return nil, "", errUnsigned
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil || len(m.Claims) > perTry || len(m.Digests) > maxDigest {
		return nil, "", errMalformed
	}
	if skew := p.now().Sub(m.Time).Abs(); skew > maxClock {
		return nil, "", fmt.Errorf("the clocks of both servers differ by %s", skew.Round(time.Second))
	}
	p.mu.Lock()
	all := p.all()
	own := m.Instance == p.instance
	if !own && !slices.ContainsFunc(all, func(to *peer) bool { return to.instance == m.Instance }) {
		for _, to := range all { // one of them has just started
			to.wakeUp()
		}
	}
	p.mu.Unlock()
	if !own {
		for _, c := range m.Claims {
			p.Told(cmp.Or(printable.Line(m.Server, 40), "another server"), c)
		}
	}
	answer, err = json.Marshal(p.message(nil))
	return answer, p.sign("answer", signature, answer), err
}

// sign returns the signature of a message; that of an answer is for one request.
func (p *Peers) sign(kind, request string, body []byte) string {
	h := hmac.New(sha256.New, p.Key)
	fmt.Fprintf(h, "drover/1 peers %s %s ", kind, request)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

func (p *Peers) signed(kind, request string, body []byte, signature string) bool {
	return len(p.Key) > 0 && hmac.Equal([]byte(signature), []byte(p.sign(kind, request, body)))
}
