package externalhost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/kube/cluster"
	"drover/pools"
	"drover/pools/config/externalhost"
)

const (
	// renewInterval is the time between two writes of a host's Lease. Clusters take a
	// Node for dead after 40 seconds, newer ones after 50.
	renewInterval = 15 * time.Second
	// checkInterval is the time between two looks at all objects.
	checkInterval = time.Minute
	retryInterval = 5 * time.Second
	maxErrors     = 5 // of hosts, in one error
)

// Hosts are the hosts outside a cluster. All methods may be called from several
// goroutines.
type Hosts struct {
	cluster *cluster.Cluster
	log     *slog.Logger
	now     func() time.Time
	changed chan struct{} // of capacity 1: check now

	mu      sync.Mutex
	hosts   []pools.ExternalHost
	network *pools.HostNetwork
	leased  map[string]types.UID // hosts with a Node, by name
	state   map[string]state     // of the last Reconcile, by name
}

// state is what the last Reconcile has found of a host.
type state struct {
	podCIDR netip.Prefix
	err     error
}

// New returns the hosts of a cluster: none, until [Hosts.Set].
func New(c *cluster.Cluster, log *slog.Logger, now func() time.Time) *Hosts {
	return &Hosts{cluster: c, log: log, now: now, changed: make(chan struct{}, 1)}
}

// Set sets the hosts as the config has them.
func (h *Hosts) Set(hosts []pools.ExternalHost, network *pools.HostNetwork) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hosts, h.network = hosts, network
	select {
	case h.changed <- struct{}{}:
	default: // it is requested already
	}
}

// config returns the hosts of the config with the Node of their range, which comes first.
// There are none without hosts.
func (h *Hosts) config() ([]pools.ExternalHost, *pools.HostNetwork) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.network == nil || len(h.hosts) == 0 {
		return nil, nil
	}
	return slices.Concat([]pools.ExternalHost{{Name: externalhost.RangeName, Size: h.network.HostPodCIDR.Bits()}}, h.hosts), h.network
}

// Run keeps the objects of all hosts until ctx is done. Objects of a host that the config
// lost stay, without a Lease: [Hosts.Remove] removes them.
func (h *Hosts) Run(ctx context.Context) {
	var renewing sync.WaitGroup
	renewing.Go(func() { h.renew(ctx) })
	defer renewing.Wait()
	again := time.NewTimer(0)
	defer again.Stop()
	said := "" // the last error, which is logged once
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.changed:
		case <-again.C:
		}
		delay := checkInterval
		if err := h.Reconcile(ctx); err != nil && ctx.Err() == nil {
			delay = retryInterval
			if said != err.Error() {
				h.log.Warn("reconciling external hosts failed", "err", err)
			}
			said = err.Error()
		} else {
			said = ""
		}
		again.Reset(delay)
	}
}

// Reconcile makes the missing objects of all hosts, and mends those that differ. It
// continues after errors of single hosts, and returns the first of them. It ends after
// several errors of the cluster, with which all further hosts would have to wait.
func (h *Hosts) Reconcile(ctx context.Context) error {
	hosts, network := h.config()
	if len(hosts) == 0 {
		h.keep(nil, nil)
		return nil
	}
	h.cluster.AwaitSecret(ctx)
	seen, err := h.nodes(ctx, network.HostPodCIDR)
	if err != nil {
		return h.failed(err)
	}
	accounts, err := h.accounts(ctx)
	if err != nil {
		return h.failed(err)
	}
	var failed failures
	leased, states := map[string]types.UID{}, map[string]state{}
	for _, host := range hosts { // all that have a Node: errors of some end the loop below
		if n := seen.external[host.Name]; n != nil {
			leased[host.Name], states[host.Name] = n.UID, state{podCIDR: seen.networks[host.Name]}
		}
	}
	h.keep(leased, states)
	for _, host := range hosts {
		uid, err := h.reconcileHost(ctx, host, network, seen)
		if err == nil && host.Name != externalhost.RangeName && !accounts[host.Name] {
			err = h.makeAccount(ctx, host.Name)
		}
		h.note(host.Name, uid, state{seen.networks[host.Name], err})
		failed.add(host.Name, err)
		if failed.cluster == maxErrors || ctx.Err() != nil {
			break
		}
	}
	errs := failed.list()
	if len(seen.intruders) > 0 {
		errs = append(errs, fmt.Errorf("hostPodCIDR %s is not for hosts alone: it overlaps the networks of nodes %q; choose a part of podCIDR that no node has", network.HostPodCIDR, seen.intruders))
	}
	return errors.Join(errs...)
}

// failures are the errors of hosts.
type failures struct {
	first   []error
	more    int // hosts with errors after those
	cluster int // errors of the cluster
}

func (f *failures) add(host string, err error) {
	switch {
	case err == nil:
		return
	case len(f.first) < maxErrors:
		f.first = append(f.first, fmt.Errorf("host %q: %w", host, err))
	default:
		f.more++
	}
	if cluster.IsDown(err) {
		f.cluster++
	}
}

func (f *failures) list() []error {
	if f.more > 0 {
		return append(f.first, fmt.Errorf("and %d more hosts", f.more))
	}
	return f.first
}

func (h *Hosts) keep(leased map[string]types.UID, states map[string]state) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leased, h.state = leased, states
}

// note notes what became of a host. Its Lease is renewed from now on: making many hosts takes
// longer than a Node without a Lease counts as alive.
func (h *Hosts) note(name string, uid types.UID, s state) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if uid != "" {
		h.leased[name] = uid
	}
	h.state[name] = s
}

// failed notes that the cluster could not be read, for all hosts.
func (h *Hosts) failed(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := map[string]state{}
	for _, host := range h.hosts {
		states[host.Name] = state{h.state[host.Name].podCIDR, err}
	}
	h.state = states
	return err
}

// State returns the network of a host as the cluster last had it, and what keeps its Node or
// credentials from being as the config has them.
func (h *Hosts) State(name string) (netip.Prefix, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.state[name]
	if !ok {
		s.err = errors.New("its Node is not made yet")
	}
	return s.podCIDR, s.err
}

// nodes are the Nodes of a cluster.
type nodes struct {
	external  map[string]*corev1.Node // with Label
	others    map[string]bool         // names of all others
	used      []netip.Prefix          // networks in the range, without that of the range itself
	intruders []string                // the first Nodes of others with a network in the range
	networks  map[string]netip.Prefix // of hosts, by name
}

// nodes reads all Nodes.
func (h *Hosts) nodes(ctx context.Context, within netip.Prefix) (*nodes, error) {
	all := &nodes{external: map[string]*corev1.Node{}, others: map[string]bool{}, networks: map[string]netip.Prefix{}}
	err := cluster.EachPage(ctx, h.cluster, h.cluster.Client().CoreV1().Nodes(), metav1.ListOptions{}, func(page []*corev1.Node) {
		for _, n := range page {
			all.add(n, within)
		}
	})
	return all, h.cluster.Wrap("list the Nodes", err)
}

func (all *nodes) add(n *corev1.Node, within netip.Prefix) {
	external := n.Labels[Label] == labelValue
	if external {
		all.external[n.Name] = n
		if n.Name == externalhost.RangeName {
			return
		}
	} else {
		all.others[n.Name] = true
	}
	for _, p := range podCIDRs(n) {
		if !p.Overlaps(within) {
			continue
		}
		all.used = append(all.used, p)
		if external {
			all.networks[n.Name] = p
		}
		if !external && len(all.intruders) < maxErrors {
			all.intruders = append(all.intruders, n.Name)
		}
	}
}

// reconcileHost makes or mends the Node of a host, and returns its UID.
func (h *Hosts) reconcileHost(ctx context.Context, host pools.ExternalHost, network *pools.HostNetwork, seen *nodes) (types.UID, error) {
	n := seen.external[host.Name]
	switch {
	case n != nil:
		return n.UID, h.mend(ctx, n, host, network)
	case seen.others[host.Name]:
		return "", errors.New("the cluster has a Node of that name that is not drover's; choose another name")
	}
	podCIDR, ok := network.HostPodCIDR, true
	if host.Name != externalhost.RangeName {
		podCIDR, ok = Allocate(network.HostPodCIDR, host.Size, seen.used)
	}
	if !ok {
		return "", fmt.Errorf("hostPodCIDR %s has no free network of /%d", network.HostPodCIDR, host.Size)
	}
	made, err := h.cluster.Client().CoreV1().Nodes().Create(ctx, object(h.cluster.Conf.Name, host, podCIDR, h.now()), metav1.CreateOptions{FieldManager: cluster.FieldManager})
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; apply deploy/hosts-rbac.yaml (drover cluster prepare)", err)
	}
	if err != nil {
		return "", h.cluster.Wrap("make its Node", err)
	}
	if host.Name != externalhost.RangeName {
		seen.used = append(seen.used, podCIDR)
		seen.networks[host.Name] = podCIDR
	}
	h.log.Info("external host has a Node", "host", host.Name, "podCIDR", podCIDR)
	return made.UID, nil
}

// mend gives a Node back what it lacks. The podCIDR of a Node cannot change.
func (h *Hosts) mend(ctx context.Context, n *corev1.Node, host pools.ExternalHost, network *pools.HostNetwork) error {
	nodes := h.cluster.Client().CoreV1().Nodes()
	opts := metav1.PatchOptions{FieldManager: cluster.FieldManager}
	if patch := metaPatch(n, host); patch != nil {
		if _, err := nodes.Patch(ctx, n.Name, types.MergePatchType, patch, opts); err != nil {
			return h.cluster.Wrap("change its Node", err)
		}
	}
	if patch := statusPatch(n, host, h.now()); patch != nil {
		if _, err := nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, patch, opts, "status"); err != nil {
			return h.cluster.Wrap("change the status of its Node", err)
		}
	}
	for _, p := range podCIDRs(n) {
		if p.Bits() != host.Size || !network.HostPodCIDR.Contains(p.Addr()) {
			return fmt.Errorf("its Node has podCIDR %s, and the config wants a /%d of %s: a podCIDR cannot change; take it out of the config, run drover host rm %s, and add it again", p, host.Size, network.HostPodCIDR, host.Name)
		}
	}
	return nil
}

// Network returns the networks of the cluster as the config has them; nil without.
func (h *Hosts) Network() *pools.HostNetwork {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.network
}
