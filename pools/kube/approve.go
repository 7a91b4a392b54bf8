package kube

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"drover/pools"
	"drover/pools/wait"
)

const (
	rulings      = 16 // requests of one cluster that are decided on at a time
	watchLimit   = 5 * time.Minute
	maxApproving = 30 * time.Second // between tries to watch the requests of a cluster
	lateGrant    = time.Hour        // how long an approved token is remembered after its end
)

// Request is a certificate request that drover came across.
type Request struct {
	Cluster string
	Name    string // of the CertificateSigningRequest
	Node    string // whom it is for; empty if that is not known
	Serving bool   // a kubelet's certificate as a server, not as a client
	Result  string // approved, denied, left, foreign or error
	Why     string // in words, unless it was approved
}

// approver decides on the certificate requests of one cluster. All that it has
// to know is in the requests; what it remembers is only which of two requests
// by the same token came first.
type approver struct {
	clusters *Clusters
	*cluster
	log *slog.Logger

	slots chan struct{}
	mu    sync.Mutex
	used  map[string]use        // by token
	seen  map[types.UID]verdict // what was reported
	busy  map[types.UID]bool    // being decided on
}

// use is the request that a token was used for.
type use struct {
	by    types.UID
	until time.Time
}

// attendAll ends what attends to clusters that were in force before, and starts
// what attends to those that are new. c.mu is held.
func (c *Clusters) attendAll(before map[string]*cluster) {
	for name, cl := range before {
		if c.byName[name] != cl && cl.stop != nil {
			cl.stop()
		}
	}
	for _, cl := range c.byName {
		if c.Attend && cl.stop == nil && c.ctx.Err() == nil {
			cl.stop = c.attend(cl)
		}
	}
}

// attend starts what has to run all the time for a cluster, and returns what
// ends it. c.mu is held.
func (c *Clusters) attend(cl *cluster) context.CancelFunc {
	ctx, cancel := context.WithCancel(c.ctx)
	if cl.conf.Token.Mode == pools.Shared {
		c.running.Go(func() { c.rotate(ctx, cl) })
	}
	if !cl.approves() {
		return cancel
	}
	a := &approver{
		clusters: c, cluster: cl, log: c.log().With("cluster", cl.conf.Name), slots: make(chan struct{}, rulings),
		used: map[string]use{}, seen: map[types.UID]verdict{}, busy: map[types.UID]bool{},
	}
	c.running.Go(func() { a.run(ctx, certificatesv1.KubeAPIServerClientKubeletSignerName) })
	if cl.conf.Serving {
		c.running.Go(func() { a.run(ctx, certificatesv1.KubeletServingSignerName) })
	}
	return cancel
}

// approves tells whether drover approves what its tokens ask for.
func (c *cluster) approves() bool { return c.conf.Approver != pools.ByCluster }

// run decides on the requests to one signer until ctx is done. It starts anew
// with all requests that there are whenever something goes wrong, and every few
// minutes.
func (a *approver) run(ctx context.Context, signer string) {
	for delay := time.Second; ctx.Err() == nil; {
		start := a.now()
		err := a.session(ctx, signer)
		a.setApproving(signer, err)
		switch {
		case err == nil && a.now().Sub(start) > 5*time.Second:
			delay = time.Second
			continue
		case err != nil && ctx.Err() == nil:
			a.log.Warn("certificate requests of nodes wait", "err", err, "again", delay)
		}
		_ = wait.Sleep(ctx, delay)
		delay = min(2*delay, maxApproving)
	}
}

// setApproving notes what keeps the approver from its work.
func (c *cluster) setApproving(signer string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.approveErrs == nil {
		c.approveErrs = make(map[string]error)
	}
	c.approveErrs[signer] = err
}

// approving returns what keeps the approver from its work, for check.
func (c *cluster) approving() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range c.approveErrs {
		if err != nil {
			return err
		}
	}
	return nil
}

// session lists the requests to a signer and watches for more, for a few
// minutes. A request that cannot be decided on ends it, with the error.
func (a *approver) session(ctx context.Context, signer string) error {
	client, err := a.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	defer work.Wait()

	opts := metav1.ListOptions{FieldSelector: "spec.signerName=" + signer}
	list, err := a.list(ctx, opts)
	if err != nil {
		return a.errorf("list the certificate requests of nodes", err)
	}
	a.setApproving(signer, nil)
	a.forget()
	// Of several requests by one token the first counts.
	slices.SortStableFunc(list.Items, func(x, y certificatesv1.CertificateSigningRequest) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	for i := range list.Items {
		a.note(&list.Items[i])
	}
	for i := range list.Items {
		a.take(ctx, &work, cancel, &list.Items[i])
	}
	limit := int64(watchLimit / time.Second)
	opts.ResourceVersion, opts.TimeoutSeconds = list.ResourceVersion, &limit
	w, err := client.CertificatesV1().CertificateSigningRequests().Watch(ctx, opts)
	if err != nil {
		return a.errorf("watch the certificate requests of nodes", err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		switch csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest); {
		case !ok: // most often that the watch is too old
			return a.errorf("watch the certificate requests of nodes", apierrors.FromObject(event.Object))
		case event.Type != watch.Deleted:
			a.take(ctx, &work, cancel, csr)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// list returns all requests, page by page.
func (a *approver) list(ctx context.Context, opts metav1.ListOptions) (*certificatesv1.CertificateSigningRequestList, error) {
	client, err := a.connect()
	if err != nil {
		return nil, err
	}
	all := new(certificatesv1.CertificateSigningRequestList)
	opts.Limit = listPage
	for {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		page, err := client.CertificatesV1().CertificateSigningRequests().List(call, opts)
		cancel()
		if err != nil {
			return nil, err
		}
		all.ResourceVersion = page.ResourceVersion
		all.Items = append(all.Items, page.Items...)
		if opts.Continue = page.Continue; opts.Continue == "" {
			return all, nil
		}
	}
}

// note remembers which request a token was used for, from what is approved.
func (a *approver) note(csr *certificatesv1.CertificateSigningRequest) {
	if r := judge(csr, a.clusters.sealKey(), a.now()); r.verdict == settled && r.token != "" && wasApproved(csr) {
		a.claim(r, csr.UID)
	}
}

// claim tells whether a request is the one that its token is used for.
func (a *approver) claim(r ruling, uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, ok := a.used[r.token]
	if !ok {
		a.used[r.token] = use{uid, r.until}
	}
	return !ok || first.by == uid
}

// forget drops what is of no use any more, before all requests are looked at.
func (a *approver) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, u := range a.used {
		if a.now().Sub(u.until) > lateGrant {
			delete(a.used, id)
		}
	}
	if len(a.seen) > maxFollow {
		clear(a.seen) // they are reported once more
	}
}

// take has a request decided on, in the background.
func (a *approver) take(ctx context.Context, work *sync.WaitGroup, fail context.CancelCauseFunc, csr *certificatesv1.CertificateSigningRequest) {
	r := judge(csr, a.clusters.sealKey(), a.now())
	switch r.verdict {
	case settled:
		a.note(csr)
		return
	case foreign, left:
		a.report(r, csr, nil)
		return
	}
	a.mu.Lock()
	begin := !a.busy[csr.UID]
	a.busy[csr.UID] = true
	a.mu.Unlock()
	if !begin {
		return
	}
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		a.leaveOff(csr.UID)
		return
	}
	work.Go(func() {
		defer func() { <-a.slots }()
		defer a.leaveOff(csr.UID)
		r, err := a.decide(ctx, r, csr)
		a.report(r, csr, err)
		if err != nil {
			fail(err)
		}
	})
}

func (a *approver) leaveOff(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.busy, uid)
}
