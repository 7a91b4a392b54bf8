package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/config/declared"
)

const (
	maxMessage = 1000 // bytes of the message of an Event; core/v1 takes 1024
	maxNotices = 4096 // notices that wait; others are left out
)

// The reasons of Events.
const (
	BootFailed = "BootFailed" // a step of a boot failed
	BootStuck  = "BootStuck"  // a boot makes no progress
	FellBack   = "FellBack"   // boots of the pool's image failed: the node boots the generation before
)

// notice is news of the boot of a node; with a reason it becomes an Event.
type notice struct{ node, boot, reason, message string }

// Booted notes that a node has reached a step of its boot: its status is written soon. It
// never waits.
func (w *Watcher) Booted(node string) { w.notice(notice{node: node}) }

// Warn makes an Event on the Machine of a node because of its boot, unless that was the last
// one of this Machine: one for a boot, reason and message. It never waits.
func (w *Watcher) Warn(node, boot, reason, message string) {
	w.notice(notice{node, boot, reason, message})
}

func (w *Watcher) notice(n notice) {
	w.init()
	select {
	case w.boots <- n:
	default: // Refresh catches up with the status
	}
}

// listen handles notices. Nodes that are no Machine have neither status nor Events.
func (w *Watcher) listen(ctx context.Context) {
	type event struct {
		notice
		uid string // of the object
	}
	last := map[declared.Key]event{} // that was made of each Machine
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-w.boots:
			k := declared.Key{Kind: pools.KindMachine, Name: n.node}
			w.mu.Lock()
			s := w.seen[k]
			w.mu.Unlock()
			if s == nil {
				delete(last, k)
				continue
			}
			w.queue.add(k, stepDelay)
			if e := (event{n, s.uid}); n.reason != "" && last[k] != e && w.send(ctx, w.event(s, n)) {
				last[k] = e
			}
		}
	}
}

// send makes an Event, and reports whether it is there. The ones that follow wait: when a
// whole room fails to boot, a few Events tell so, and the statuses have the rest.
func (w *Watcher) send(ctx context.Context, e *corev1.Event) bool {
	if w.queue.rate.Wait(ctx) != nil {
		return false
	}
	_, err := w.Cluster.Client().CoreV1().Events(w.Namespace).Create(ctx, e, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.Log.Debug("event not written", "machine", e.InvolvedObject.Name, "err", err)
		return false
	}
	return true
}

func (w *Watcher) event(s *seen, n notice) *corev1.Event {
	now := metav1.NewTime(w.now())
	sum := sha256.Sum256([]byte(n.boot + "\n" + n.reason + "\n" + n.message))
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%s", s.Name, hex.EncodeToString(sum[:8])), Namespace: w.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: pools.ObjectGroup + "/" + pools.ObjectVersion, Kind: string(s.Kind), Name: s.Name, Namespace: w.Namespace, UID: types.UID(s.uid),
		},
		Type: corev1.EventTypeWarning, Reason: n.reason, Message: printable.Line(n.message, maxMessage),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: "drover"}, ReportingController: pools.ObjectGroup + "/drover",
	}
}
