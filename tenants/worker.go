package tenants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/client"
	"drover/pools"
	"drover/tenants/manifests"
)

// worker keeps one control plane. Its methods run in one goroutine.
type worker struct {
	controller *Controller
	declared
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}

	// Of this round.
	plane   *manifests.Plane
	set     *appsv1.StatefulSet // nil: there is none
	ran     string              // the newest version whose API server has answered, or ""
	refused []*waiting          // changes that are not carried out

	recalled    bool // the status of before is read
	status      Status
	published   *Status   // the status in the tenant's object
	publishedAt time.Time // when it was written
	tenant      *tenant   // the connection; nil before the API server is reached

	aside     string    // why its endpoint may not lead to its Service; "": it does
	number    int       // its VNI, once that is known
	pause     pause     // between rounds while it is not as it should be
	queued    bool      // it waits until no other control plane starts
	holds     bool      // it holds up other starts
	heldSince time.Time // then
}

// waiting is an error that time or a person heals, and its reason in a condition.
type waiting struct{ reason, message string }

// Reasons of conditions.
const (
	starting           = "Starting"
	inQueue            = "Waiting"
	versionUnreachable = "VersionUnreachable"
	networksFixed      = "NetworksFixed"
	storageFixed       = "StorageFixed"
)

func (e *waiting) Error() string { return e.message }

// refuse notes a change of the tenant that is not carried out.
func (w *worker) refuse(reason, format string, args ...any) {
	w.refused = append(w.refused, &waiting{reason, fmt.Sprintf(format, args...)})
}

// refusal returns the error of the changes that are not carried out.
func (w *worker) refusal() error {
	var why []string
	for _, r := range w.refused {
		why = append(why, r.message)
	}
	return &waiting{w.refused[0].reason, strings.Join(why, "; ")}
}

func (w *worker) now() time.Time { return w.controller.now() }

func (w *worker) secrets() client.Secrets {
	return w.controller.typed().CoreV1().Secrets(w.controller.Namespace)
}

// round compares a control plane with what is meant, once. It returns the time until the
// next round. The error is in the status too; one that time heals is not returned.
func (w *worker) round(ctx context.Context) (time.Duration, error) {
	cp := *w.conf.ControlPlane
	w.plane = &manifests.Plane{
		Name: w.conf.Name, Namespace: w.controller.Namespace, Spec: cp, Policy: cmp.Or(w.conf.DeletionPolicy, pools.Retain), AgentPort: manifests.Konnectivity,
		Serving: w.conf.Serving && w.conf.Approver != pools.ByCluster,
	}
	w.set, w.refused, w.queued = nil, nil, false
	w.recall(ctx)
	again, err := w.conclude(w.keep(ctx))
	for i := range w.status.Conditions {
		w.status.Conditions[i].ObservedGeneration = w.generation
	}
	w.controller.report(w.conf.Name, w.status)
	if failed := w.publish(ctx); failed != nil && err == nil {
		return w.pause.next(w.now(), "publish", quickRound), fmt.Errorf("status of the Tenant: %w", failed)
	}
	return again, err
}

// conclude sets the condition Ready by the error of a round, and returns as round does.
func (w *worker) conclude(err error) (time.Duration, error) {
	if err == nil && len(w.refused) > 0 {
		err = w.refusal()
	}
	now, again := w.now(), slowRound
	wait, isWaiting := errors.AsType[*waiting](err)
	if !isWaiting || wait.reason != starting || now.Sub(w.heldSince) >= startTimeout {
		w.started()
	}
	switch {
	case err == nil:
		w.status.set(Ready, true, "Ready", "nodes can join", now)
		if c := w.status.Condition(AgentsConnected); w.status.Nodes > 0 && c != nil && c.Status == metav1.ConditionFalse {
			again = w.pause.next(now, c.Reason, 5*quickRound)
		} else {
			w.pause = pause{}
		}
	case isWaiting:
		w.status.set(Ready, false, wait.reason, wait.message, now)
		if len(w.refused) == 0 || wait.reason != w.refused[0].reason {
			again = w.pause.next(now, wait.reason+w.status.ready(), quickRound)
		}
		if wait.reason != keysLost { // an operator has to act on that one: it is in the log too
			err = nil
		}
	default:
		w.status.set(Ready, false, "Error", err.Error(), now)
		again = w.pause.next(now, "Error"+w.status.ready(), 5*quickRound)
	}
	return again, err
}

// keep does the work of a round.
func (w *worker) keep(ctx context.Context) error {
	k, err := w.prepare(ctx)
	if err != nil {
		w.look(ctx, k)
		return err
	}
	stuck := w.apply(ctx)
	rolledOut, err := w.health(ctx)
	if err == nil {
		err = w.inTenant(ctx, k)
	}
	if err := cmp.Or(stuck, err, rolledOut); err != nil {
		return err
	}
	return w.noteNetworks(ctx, k)
}

// prepare finds out all that the pods of the control plane depend on. After an error the keys
// may be there.
func (w *worker) prepare(ctx context.Context) (*keys, error) {
	p := w.plane
	if len(p.Name) > manifests.MaxName {
		return nil, fmt.Errorf("the name %q has more than %d characters, so that Kubernetes cannot name its pods", p.Name, manifests.MaxName)
	}
	if err := w.readSet(ctx); err != nil {
		return nil, err
	}
	k, err := w.readKeys(ctx)
	if err := errors.Join(err, w.notePolicy(ctx, k)); err != nil {
		return k, err
	}
	if err := w.findRan(ctx, k); err != nil {
		return k, err
	}
	if err := w.chooseVersion(); err != nil {
		return k, err
	}
	w.chooseNetworks(k)
	w.chooseStorage()
	if err := w.front(ctx, k); err != nil {
		return k, err
	}
	if err := w.chooseVNI(ctx, k); err != nil {
		return k, err
	}
	p.VNI = w.number
	leaves, err := w.renew(ctx, k)
	if err != nil {
		return k, err
	}
	p.CA, p.KeysID = k.ca.Trust, k.id(leaves)
	w.status.Endpoint, w.status.VNI = p.Endpoint(), p.VNI
	return k, nil
}

// notePolicy brings the deletionPolicy to the cluster: whatever goes wrong later in the round,
// a tenant that is removed then is removed as it was declared. The StatefulSet comes last, so
// that the policy on it is the one of the keys too. k may be nil.
func (w *worker) notePolicy(ctx context.Context, k *keys) error {
	policy := map[string]string{manifests.DeletionNote: string(w.plane.Policy)}
	if k != nil {
		if err := w.note(ctx, k, policy); err != nil {
			return err
		}
	}
	return w.noteSet(ctx, policy)
}

// look finds out how a control plane is that cannot be kept. k may be nil.
func (w *worker) look(ctx context.Context, k *keys) {
	_, err := w.health(ctx)
	if err == nil && k != nil && w.plane.Address.IsValid() {
		err = w.connect(k)
	}
	if _, isWaiting := errors.AsType[*waiting](err); isWaiting {
		return // it is in the status
	}
	switch {
	case w.tenant != nil:
		if _, err := w.ask(ctx); err == nil {
			_ = w.count(ctx) // the round has an error already
		}
	case err != nil:
		w.status.unknown(Available, "Unknown", err.Error(), w.now())
	default:
		w.status.unknown(Available, "NotAsked", "kube-apiserver runs, and drover has no key or address to ask it", w.now())
	}
}

// pause is the time between rounds while a tenant is not as it should be.
type pause struct {
	state string    // what it is the pause of
	since time.Time // then that began
	delay time.Duration
}

// next returns the pause after another round that found the same state: the first one for as
// long as a start takes, and then twice the one before.
func (p *pause) next(now time.Time, state string, first time.Duration) time.Duration {
	if state != p.state {
		*p = pause{state, now, first}
	}
	if now.Sub(p.since) >= startTimeout {
		p.delay = min(2*p.delay, slowRound)
	}
	return p.delay
}
