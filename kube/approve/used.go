package approve

import (
	"context"
	"math"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"drover/internal/wait"
	"drover/kube/client"
	"drover/kube/cluster"
)

// UsedNamespace has the records of used tokens, and nothing else; deploy/rbac.yaml makes
// it.
const UsedNamespace = "drover-used-tokens"

// usedTTL is how long the record of a used token stays after the token's end: the clocks
// of servers may differ by less.
const usedTTL = time.Hour

// sweepPause is the pause between two deletions of records: nodes that join need the
// API server too.
const sweepPause = 20 * time.Millisecond

// sweepTimeout is the longest time that requests wait for the list of records.
const sweepTimeout = 30 * time.Second

// usedErr is the key of the error of the records in Approver.errs.
const usedErr = "used tokens"

// record returns the record that a request uses its token. Its name is the ID of the
// token, so the cluster makes one for each token, however many servers try: only the
// request that it names is approved, also after a restart. It is a Lease because no
// controller acts on one, and drover needs no right to ConfigMaps or more Secrets.
func (a *Approver) record(d decision, uid types.UID) *coordinationv1.Lease {
	holder, now := string(uid), metav1.NewMicroTime(a.Now())
	seconds := int32(min(max(d.until.Add(usedTTL).Sub(now.Time)/time.Second, 1), math.MaxInt32))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: d.token, Namespace: UsedNamespace},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &now, LeaseDurationSeconds: &seconds},
	}
}

// recordEnd returns the time after which a record is deleted. It is zero for an object
// that is no record.
func recordEnd(l *coordinationv1.Lease) (end time.Time) {
	if l.Spec.HolderIdentity != nil && l.Spec.AcquireTime != nil && l.Spec.LeaseDurationSeconds != nil {
		end = l.Spec.AcquireTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
	}
	return end
}

// use records in the cluster that a request uses its token, and denies the request if
// another one does. A request that the record names already, because the server ended
// before the approval, goes on.
func (a *Approver) use(ctx context.Context, d decision, uid types.UID) (decision, error) {
	const doing = "record that a join token is used"
	if a.Now().After(d.until) { // its record may have been deleted
		return d.deny("its token expired at %s", d.until.UTC().Format(time.RFC3339)), nil
	}
	_, err := a.records().Create(ctx, a.record(d, uid), metav1.CreateOptions{FieldManager: cluster.FieldManager})
	if err == nil {
		a.noteUsed(d)
		return d, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return d, a.wrapUsed(doing, err)
	}
	l, err := a.records().Get(ctx, d.token, metav1.GetOptions{})
	if err != nil {
		return d, a.Wrap(doing, err)
	}
	a.noteUsed(d)
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != string(uid) {
		return d.deny("its token was used for another certificate request before; who got that one?"), nil
	}
	return d, nil
}

// unrecorded returns the decision to record the use of a token that has no record, as far as
// this server knows, although a request by it is approved: by an earlier drover, or by an
// operator. The token is empty if there is nothing to record.
func (a *Approver) unrecorded(d decision, r *csr) decision {
	none := decision{verdict: settled}
	if _, known := a.used.Get(d.token); known || d.token == "" || !has(r, certificatesv1.CertificateApproved) || a.Now().After(d.until) {
		return none
	}
	pending := *r
	pending.Status = certificatesv1.CertificateSigningRequestStatus{}
	if d = evaluate(&pending, a.Key, a.Now()); d.verdict != approved || !d.once() {
		return none
	}
	d.verdict = settled
	return d
}

// noteUsed remembers that a token has a record. This saves requests and decides nothing.
func (a *Approver) noteUsed(d decision) { a.used.Add(d.token, nil, d.until.Sub(a.Now())) }

// wrapUsed is [cluster.Cluster.Wrap] for the records, with the remedy in a cluster that was
// prepared by an earlier drover.
func (a *Approver) wrapUsed(doing string, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) { // no right, no namespace
		return &cluster.Error{
			Cluster: a.Conf.Name, Doing: doing, Err: err, Retry: cluster.RetryLater,
			Hint: `drover may not, so no node can join: run "drover cluster prepare" again (deploy/rbac.yaml)`,
		}
	}
	return a.Wrap(doing, err)
}

// sweep reads the records of used tokens, and deletes those of tokens that ended, in the
// background.
func (a *Approver) sweep(ctx context.Context, work *sync.WaitGroup) {
	if !a.sweeping.TryLock() {
		return
	}
	ended := map[string]types.UID{}
	limited, cancel := context.WithTimeout(ctx, sweepTimeout) // requests wait
	defer cancel()
	err := cluster.EachPage(limited, a.Cluster, a.records(), metav1.ListOptions{}, func(page []*coordinationv1.Lease) {
		for _, l := range page {
			switch end := recordEnd(l); {
			case end.IsZero() || len(l.Name) != bootstrapapi.BootstrapTokenIDBytes || len(l.UID) > maxUID:
			case a.Now().After(end):
				ended[l.Name] = l.UID
			default:
				a.used.Add(l.Name, nil, end.Sub(a.Now()))
			}
		}
	})
	if ctx.Err() == nil {
		a.setErr(usedErr, a.wrapUsed("list the used join tokens", err))
	}
	work.Go(func() {
		defer a.sweeping.Unlock()
		for name, uid := range ended {
			// The record of a later token with the same ID has another UID.
			err := a.records().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) || wait.Sleep(ctx, sweepPause) != nil {
				return // the next sweep goes on
			}
		}
	})
}

// records returns the client of the records.
func (a *Approver) records() client.Leases {
	return a.Client().CoordinationV1().Leases(UsedNamespace)
}

// turns lets the requests by one token be decided on one after another, in the order in
// which they came: the first one is to have the certificate.
type turns struct {
	mu   sync.Mutex
	last map[string]chan struct{} // closed at the end of the last turn of each token
}

// take takes the next turn of a token. The caller waits for before, which is nil for the
// first turn, and calls end.
func (t *turns) take(token string) (before <-chan struct{}, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		t.last = map[string]chan struct{}{}
	}
	before, mine := t.last[token], make(chan struct{})
	t.last[token] = mine
	return before, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.last[token] == mine {
			delete(t.last, token)
		}
		close(mine)
	}
}
