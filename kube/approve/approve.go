package approve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"drover/internal/lograte"
	"drover/internal/wait"
	"drover/kube/client"
	"drover/kube/cluster"
	"drover/pools"
	"drover/pools/resolve"
)

const (
	maxDecisions = 16               // decisions under way in one cluster
	relist       = 5 * time.Minute  // the interval at which all requests are evaluated again: the farm may have changed
	retryFirst   = time.Second      // the delay after a failed decision; it doubles
	retryMax     = 30 * time.Second // the longest delay
	maxTokens    = 1 << 16          // tokens that are known to have a record
	maxSeen      = 4096             // requests whose reported verdict is remembered
	maxWaiting   = 64 << 20         // memory of the requests that wait for a decision, in bytes
	seenTTL      = 24 * time.Hour   // how long; clusters delete pending requests after that
)

// Request is the report of a certificate request.
type Request struct {
	Cluster string
	Name    string // of the CertificateSigningRequest
	Node    string // of the certificate; empty if unknown
	Serving bool   // a serving certificate of a kubelet, not a client certificate
	Result  string // approved, denied, left, foreign or error
	Why     string // the reason; empty for approved requests
}

// Machines finds the machine of a node; [drover/pools/machines.Directory] implements
// it. It is called from several goroutines.
type Machines interface {
	// Named returns the Plan, by the farm in force, of the machine that is the node
	// of that name, or nil. For a name of unknown hardware the Plan can be that of
	// the node which declares the machine now, under another name.
	Named(node string) *resolve.Plan
	// Booting reports whether a machine of the node of that name is booting.
	Booting(node string) bool
}

// Approver decides on the certificate requests of one cluster. The only state that
// counts, the request that each token was used for, is in the cluster.
type Approver struct {
	*cluster.Cluster
	Key       []byte           // seals grants
	Now       func() time.Time // the clock
	Log       *slog.Logger
	Machines  Machines                     // nil: no machine boots
	Addresses func(pools.MAC) []netip.Addr // of a machine, IPv4 and IPv6; may be nil
	OnRequest func(Request)                // called for each request that is decided on or left alone; may be nil

	slots *semaphore.Weighted
	room  *semaphore.Weighted   // for requests that wait
	lines *lograte.Limiter      // of warnings in the log
	seen  *cache.LRUExpireCache // reported verdicts, by UID
	used  *cache.LRUExpireCache // IDs of tokens that have a record
	turns turns                 // of the requests by each token
	busy  sync.Map              // UIDs of requests that are being decided on
	errs  sync.Map              // the error of the last list, watch or decision, by signer
	said  sync.Map              // *lograte.Repeated of those errors, by signer

	sweeping sync.Mutex // held during a sweep
}

// Run decides on requests for client certificates until ctx is done and, if the config
// asks for it, on requests for serving certificates.
func (a *Approver) Run(ctx context.Context) {
	a.slots, a.room, a.lines = semaphore.NewWeighted(maxDecisions), semaphore.NewWeighted(maxWaiting), &lograte.Limiter{Log: a.Log}
	a.seen, a.used = cache.NewLRUExpireCache(maxSeen), cache.NewLRUExpireCache(maxTokens)
	var work sync.WaitGroup
	defer work.Wait()
	if a.Conf.Serving {
		work.Go(func() { a.follow(ctx, certificatesv1.KubeletServingSignerName, &work) })
	}
	a.follow(ctx, certificatesv1.KubeAPIServerClientKubeletSignerName, &work)
}

// Err returns an error that currently stops the approver, or nil.
func (a *Approver) Err() (err error) {
	a.errs.Range(func(_, last any) bool {
		err, _ = last.(error)
		return err == nil
	})
	return err
}

// setErr records the result of the last list, watch or decision.
func (a *Approver) setErr(signer string, err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	said, _ := a.said.LoadOrStore(signer, &lograte.Repeated{})
	if said.(*lograte.Repeated).Allow(problem) && a.lines.Allow(slog.LevelWarn, "certificate requests wait") {
		a.Log.Warn("certificate requests of nodes wait", "err", err)
	}
	a.errs.Store(signer, err)
}

// follow decides on the requests to one signer until ctx is done.
func (a *Approver) follow(ctx context.Context, signer string, work *sync.WaitGroup) {
	requests := func(client client.Interface) cluster.Source[*csrList] {
		return client.CertificatesV1().CertificateSigningRequests()
	}
	for ctx.Err() == nil {
		session, cancel := context.WithTimeout(ctx, relist)
		cluster.Follow(session, a.Cluster, requests, "spec.signerName="+signer, cluster.Handler[*csr]{
			Listed: func(all []*csr) {
				all = slices.DeleteFunc(all, oversized)
				// The first of several requests by one token counts.
				slices.SortStableFunc(all, func(x, y *csr) int {
					return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
				})
				if signer == certificatesv1.KubeAPIServerClientKubeletSignerName {
					a.sweep(session, work)
				}
				for _, r := range all { // a new request by the token of an approved one must wait for its record
					if decided(r) {
						a.handle(ctx, work, r)
					}
				}
				for _, r := range all {
					if !decided(r) {
						a.handle(ctx, work, r)
					}
				}
			},
			Changed: func(r *csr) {
				if !oversized(r) {
					a.handle(ctx, work, r)
				}
			},
			Tried: func(verb string, err error) {
				if session.Err() == nil {
					a.setErr(signer, a.Wrap(verb+" the certificate requests of nodes", err))
				}
			},
		})
		cancel()
	}
}

// handle decides on a request, in the background if that needs the cluster.
func (a *Approver) handle(ctx context.Context, work *sync.WaitGroup, r *csr) {
	d := evaluate(r, a.Key, a.Now())
	switch d.verdict {
	case settled:
		if d = a.unrecorded(d, r); d.token == "" {
			return
		}
	case foreign, left:
		a.report(d, r, nil)
		return
	}
	if _, busy := a.busy.LoadOrStore(r.UID, nil); busy {
		return
	}
	memory := int64(4*r.Size() + 1024) // about four times its encoded size
	if !a.room.TryAcquire(memory) {
		a.busy.Delete(r.UID)
		a.setErr(r.Spec.SignerName, a.Wrap("decide on the certificate requests of nodes", errors.New("too many wait; the rest is for the next list")))
		return
	}
	var before <-chan struct{}
	end := func() {}
	if d.verdict != denied && d.once() {
		before, end = a.turns.take(d.token)
	}
	r = r.DeepCopy() // so that it does not keep its page of a list in memory
	work.Go(func() {
		defer a.room.Release(memory)
		defer end()
		a.retryDecide(ctx, before, d, r)
	})
}

// retryDecide decides on a request, once before is closed. After an error it tries again,
// until all requests are listed anew.
func (a *Approver) retryDecide(ctx context.Context, before <-chan struct{}, d decision, r *csr) {
	defer a.busy.Delete(r.UID)
	ctx, cancel := context.WithTimeout(ctx, relist)
	defer cancel()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done():
			return
		}
	}
	for delay := retryFirst; ; delay = min(2*delay, retryMax) {
		if a.slots.Acquire(ctx, 1) != nil {
			return
		}
		done, err := a.decide(ctx, d, r)
		a.slots.Release(1)
		if err != nil && ctx.Err() != nil {
			return
		}
		a.report(done, r, err)
		a.setErr(r.Spec.SignerName, err)
		if err == nil || wait.Sleep(ctx, delay) != nil {
			return
		}
	}
}
