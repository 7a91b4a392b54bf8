package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"drover/pools"
	"drover/pools/kube/apply"
	"drover/pools/kube/hosted/manifests"
)

// worker keeps one control plane. Its methods run in one goroutine.
type worker struct {
	controller *Controller
	declared
	log    *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}

	plane       *manifests.Plane // of this round
	status      Status
	published   *Status   // the status in the tenant's object
	publishedAt time.Time // when it was written
	tenant      *tenant   // the connection; nil before the API server is reached

	aside     string    // why its endpoint may not lead to its Service; "": it does
	number    int       // its VNI, once that is known
	applied   string    // fingerprint of the pods that were applied last
	holds     bool      // it holds up other starts
	heldSince time.Time // then
}

// waiting is an error that time heals, and its reason in a condition.
type waiting struct{ reason, message string }

// Reasons of conditions.
const (
	starting           = "Starting"
	versionUnreachable = "VersionUnreachable"
)

func (e *waiting) Error() string { return e.message }

func (w *worker) now() time.Time { return w.controller.now() }

func (w *worker) secrets() typedcore.SecretInterface {
	return w.controller.typed.CoreV1().Secrets(w.controller.Namespace)
}

// round compares a control plane with what is meant, once. It returns the time until the
// next round. The error is in the status too; one that time heals is not returned.
func (w *worker) round(ctx context.Context) (time.Duration, error) {
	cp := *w.conf.ControlPlane
	w.plane = &manifests.Plane{
		Name: w.conf.Name, Namespace: w.controller.Namespace, Spec: cp, Policy: w.conf.DeletionPolicy, AgentPort: manifests.Konnectivity,
		Serving: w.conf.Serving && w.conf.Approver != pools.ByCluster,
	}
	err := w.keep(ctx)
	if accepted := w.status.Condition(VersionAccepted); err == nil && accepted != nil && accepted.Status == metav1.ConditionFalse {
		err = &waiting{versionUnreachable, accepted.Message}
	}
	now, again := w.now(), quickRound
	wait, isWaiting := errors.AsType[*waiting](err)
	switch {
	case err == nil:
		w.status.set(Ready, true, "Ready", "nodes can join", now)
		again = slowRound
		if c := w.status.Condition(AgentsConnected); w.status.Nodes > 0 && c != nil && c.Status == metav1.ConditionFalse {
			again = 5 * quickRound
		}
	case isWaiting:
		w.status.set(Ready, false, wait.reason, wait.message, now)
		if wait.reason == versionUnreachable {
			again = slowRound
		}
		err = nil
	default:
		w.status.set(Ready, false, "Error", err.Error(), now)
		again = 5 * quickRound
	}
	if !isWaiting || wait.reason != starting || now.Sub(w.heldSince) >= startTimeout {
		w.started()
	}
	for i := range w.status.Conditions {
		w.status.Conditions[i].ObservedGeneration = w.generation
	}
	w.controller.report(w.conf.Name, w.status)
	if failed := w.publish(ctx); failed != nil && err == nil {
		return quickRound, fmt.Errorf("status of the Tenant: %w", failed)
	}
	return again, err
}

// keep does the work of a round.
func (w *worker) keep(ctx context.Context) error {
	p := w.plane
	if len(p.Name) > manifests.MaxName {
		return fmt.Errorf("the name %q has more than %d characters, so that Kubernetes cannot name its pods", p.Name, manifests.MaxName)
	}
	k, err := w.readKeys(ctx)
	if err != nil {
		return err
	}
	if err := w.chooseVersion(k); err != nil {
		return err
	}
	if err := w.chooseEtcd(ctx, k); err != nil {
		return err
	}
	if err := w.front(ctx); err != nil {
		return err
	}
	if err := w.chooseVNI(ctx, k); err != nil {
		return err
	}
	p.VNI = w.number
	leaves, err := w.renew(ctx, k)
	if err != nil {
		return err
	}
	p.CA, p.KeysID = k.ca.Trust, k.id(leaves)
	w.status.Endpoint, w.status.VNI = p.Endpoint(), p.VNI
	if err := w.pods(ctx); err != nil {
		return err
	}
	rolledOut, err := w.health(ctx)
	if err != nil {
		return err
	}
	if err := w.inTenant(ctx, k); err != nil {
		return err
	}
	return rolledOut
}

// chooseVersion chooses the version to run: the one that is meant, or the one that has
// run last while that cannot be reached.
func (w *worker) chooseVersion(k *keys) error {
	ran := k.secret.Annotations[manifests.VersionNote]
	meant := w.plane.Spec.Version
	why := unreachable(ran, meant)
	w.plane.Version = meant
	if why == "" {
		w.status.set(VersionAccepted, true, "Reachable", "version "+meant, w.now())
		return nil
	}
	w.status.set(VersionAccepted, false, "Unreachable", why, w.now())
	if ran == "" {
		return &waiting{versionUnreachable, why}
	}
	w.plane.Version = ran
	return nil
}

// front applies the Services, and finds out where nodes reach the control plane.
func (w *worker) front(ctx context.Context) error {
	text, err := w.plane.Front()
	if err != nil {
		return err
	}
	service := &corev1.Service{}
	var broken error
	err = apply.Manifest(ctx, w.controller.dyn, manager, text, func(o *unstructured.Unstructured) {
		if o.GetName() == w.plane.Service() {
			broken = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, service)
		}
	})
	if err := errors.Join(err, broken); err != nil {
		return err
	}
	if w.plane.NodePort() {
		for _, port := range service.Spec.Ports {
			if port.Name == "konnectivity" {
				w.plane.AgentPort = int(port.NodePort)
			}
		}
	}
	w.plane.Address = w.plane.Spec.Endpoint.Address
	if w.plane.Address.IsValid() {
		w.aside = unassigned(service, w.plane.Address)
		return nil
	}
	for _, in := range service.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil {
			w.plane.Address = a
			return nil
		}
	}
	return &waiting{"NoAddress", fmt.Sprintf("the Service %q has no address yet: does the admin cluster have a load balancer? Or set endpoint.address", service.Name)}
}

// unassigned returns why an endpoint may not lead to its Service, or "": the load balancer
// has given it no address, or another one.
func unassigned(s *corev1.Service, endpoint netip.Addr) string {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return ""
	}
	var given []string
	for _, in := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil && a == endpoint {
			return ""
		}
		given = append(given, cmp.Or(in.IP, in.Hostname))
	}
	if len(given) == 0 {
		return fmt.Sprintf("; the Service %q has no address yet: does the admin cluster have a load balancer?", s.Name)
	}
	return fmt.Sprintf("; the load balancer gave the Service %q the address %s, not endpoint.address: some want it in endpoint.annotations", s.Name, strings.Join(given, ", "))
}

// pods applies the StatefulSet. If that starts pods, others wait.
func (w *worker) pods(ctx context.Context) error {
	text, err := w.plane.Pods()
	if err != nil {
		return err
	}
	id := manifests.Fingerprint(text)
	if id != w.applied && !w.holds {
		select {
		case w.controller.starts <- struct{}{}:
			w.holds, w.heldSince = true, w.now()
		default:
			return &waiting{"Waiting", "another control plane starts"}
		}
	}
	if err := apply.Manifest(ctx, w.controller.dyn, manager, text, nil); err != nil {
		return err
	}
	w.applied = id
	return nil
}

// started lets others start.
func (w *worker) started() {
	if w.holds {
		w.holds = false
		<-w.controller.starts
	}
}

// health reads the state of the pods. rolledOut is nil once all pods run as they are
// meant to. The error is one of the admin cluster, or says that the API server does not
// run.
func (w *worker) health(ctx context.Context) (rolledOut, err error) {
	c := w.controller
	set, err := c.typed.AppsV1().StatefulSets(c.Namespace).Get(ctx, w.plane.StatefulSet(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := c.typed.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(set.Spec.Selector)})
	if err != nil {
		return nil, err
	}
	w.status.Parts = nil
	if len(pods.Items) == 0 {
		return nil, w.down(&waiting{starting, "there is no pod yet"})
	}
	pod := &pods.Items[0]
	w.status.Parts = parts(pod)
	if message := pending(pod); message != "" {
		return nil, w.down(&waiting{starting, message})
	}
	for _, part := range w.status.Parts {
		if part.Name == "kube-apiserver" && !part.Ready {
			return nil, w.down(&waiting{starting, "kube-apiserver: " + part.Detail})
		}
		if !part.Ready && rolledOut == nil {
			rolledOut = &waiting{starting, part.Name + ": " + part.Detail}
		}
	}
	if !current(set) && rolledOut == nil {
		rolledOut = &waiting{starting, "its pod is replaced"}
	}
	return rolledOut, nil
}

// down notes that the API server does not run.
func (w *worker) down(e *waiting) error {
	w.status.set(Available, false, e.reason, e.message, w.now())
	return e
}

// pending returns the reason why a pod has not started, or "".
func pending(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "its pod ends"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	if len(pod.Status.InitContainerStatuses) == 0 {
		return "its pod is prepared"
	}
	return ""
}

// current reports whether all pods are of the newest template.
func current(s *appsv1.StatefulSet) bool {
	return s.Status.ObservedGeneration >= s.Generation && s.Status.CurrentRevision == s.Status.UpdateRevision && s.Status.ReadyReplicas == s.Status.Replicas
}
