package externalhost

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drover/kube/cluster"
	"drover/kube/credentials"
	"drover/pools"
	"drover/pools/config/externalhost"
)

// Status is a host as the cluster has it.
type Status struct {
	Name     string       `json:"name"`
	Address  netip.Addr   `json:"address,omitzero"`
	PodCIDR  netip.Prefix `json:"podCIDR,omitzero"` // its first address is the host's own in the pod network
	Ready    bool         `json:"ready"`            // its Lease is renewed
	Flannel  bool         `json:"flannel"`          // flannel has run on the host
	Account  bool         `json:"account"`          // it has credentials
	Declared bool         `json:"declared"`         // it is in the config
}

// accounts returns the names of the hosts that have a ServiceAccount.
func (h *Hosts) accounts(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{}
	err := cluster.EachPage(ctx, h.cluster, h.cluster.Client().CoreV1().ServiceAccounts(Namespace), metav1.ListOptions{LabelSelector: Label}, func(page []*corev1.ServiceAccount) {
		for _, a := range page {
			names[a.Name] = true
		}
	})
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; apply deploy/hosts-rbac.yaml (drover cluster prepare)", err)
	}
	return names, h.cluster.Wrap("list the credentials of hosts", err)
}

func (h *Hosts) makeAccount(ctx context.Context, name string) error {
	mount := false
	account := &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: labelValue}},
		AutomountServiceAccountToken: &mount,
	}
	_, err := h.cluster.Client().CoreV1().ServiceAccounts(Namespace).Create(ctx, account, metav1.CreateOptions{FieldManager: cluster.FieldManager})
	return h.cluster.Wrap("make its ServiceAccount", err)
}

// List returns the hosts of the config and those that the cluster has, sorted by name.
func (h *Hosts) List(ctx context.Context) ([]Status, error) {
	h.mu.Lock()
	declared, network := slices.Clone(h.hosts), h.network
	h.mu.Unlock()
	if network == nil {
		return []Status{}, nil
	}
	h.cluster.AwaitSecret(ctx)
	seen, err := h.nodes(ctx, network.HostPodCIDR)
	if err != nil {
		return nil, err
	}
	accounts, err := h.accounts(ctx)
	if err != nil {
		return nil, err
	}
	all := []Status{}
	for _, host := range declared {
		all = append(all, Status{Name: host.Name, Address: host.Address, Account: accounts[host.Name], Declared: true})
	}
	find := func(name string) *Status {
		i := slices.IndexFunc(all, func(s Status) bool { return s.Name == name })
		if i < 0 {
			all = append(all, Status{Name: name, Account: accounts[name]})
			i = len(all) - 1
		}
		return &all[i]
	}
	for name := range accounts {
		find(name)
	}
	for name, n := range seen.external {
		if name != externalhost.RangeName {
			find(name).read(n)
		}
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// read takes the state of a host from its Node.
func (s *Status) read(n *corev1.Node) {
	s.PodCIDR = netip.Prefix{}
	if all := podCIDRs(n); len(all) > 0 {
		s.PodCIDR = all[0]
	}
	for _, a := range n.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP && !s.Address.IsValid() {
			s.Address = addr
		}
	}
	s.Ready = slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	s.Flannel = n.Annotations[flannelBackend] != ""
}

// Declared returns a host of the config with the networks of its cluster.
func (h *Hosts) Declared(name string) (pools.ExternalHost, *pools.HostNetwork, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.hosts, func(o pools.ExternalHost) bool { return o.Name == name })
	if i < 0 {
		return pools.ExternalHost{}, nil, fmt.Errorf("cluster %q has no host %q in the config", h.cluster.Conf.Name, name)
	}
	return h.hosts[i], h.network, nil
}

// Credentials are those of a host: a token of its ServiceAccount, and the cluster's
// address and CAs.
type Credentials struct {
	Server  string // https://host:port
	CA      []byte // in PEM
	Token   string
	Expires time.Time
}

// Credentials returns new credentials of a host, whose ServiceAccount exists. They end
// after ttl, or earlier if the cluster says so.
func (h *Hosts) Credentials(ctx context.Context, name string, ttl time.Duration) (*Credentials, error) {
	h.cluster.AwaitSecret(ctx)
	info, err := h.cluster.Info(ctx)
	if err != nil {
		return nil, err
	}
	token, end, err := credentials.Request(ctx, h.cluster.Client(), credentials.Account{Namespace: Namespace, Name: name}, ttl)
	if apierrors.IsNotFound(err) {
		err = errors.New("it has no ServiceAccount yet: drover serve makes it")
	}
	if err != nil {
		return nil, h.cluster.Wrap("make credentials of host "+name, err)
	}
	server := info.Endpoint
	if h.cluster.Conf.Endpoint != "" {
		server = h.cluster.Conf.Endpoint
	}
	return &Credentials{Server: "https://" + server, CA: info.CA, Token: token, Expires: end}, nil
}

// Remove deletes Node, Lease and ServiceAccount of a host; with the last host also the
// Node of the range. Its credentials end at once. What is gone already is no error. A
// host that the config has would be made again: Remove refuses it.
func (h *Hosts) Remove(ctx context.Context, name string) error {
	if _, _, err := h.Declared(name); err == nil {
		return fmt.Errorf("host %q is in the config, and drover serve would make it again: remove it there first", name)
	}
	if name == externalhost.RangeName {
		return fmt.Errorf("%q is the Node of all hosts: it goes with the last one", name)
	}
	h.cluster.AwaitSecret(ctx)
	client := h.cluster.Client().CoreV1()
	n, err := client.Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && n.Labels[Label] != labelValue:
		return fmt.Errorf("node %q is not that of a host outside the cluster", name)
	case err == nil:
		err = client.Nodes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &n.UID}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return h.cluster.Wrap("delete the Node of host "+name, err)
	}
	err = h.cluster.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return h.cluster.Wrap("delete the Lease of host "+name, err)
	}
	err = client.ServiceAccounts(Namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return h.cluster.Wrap("delete the credentials of host "+name, err)
	}
	return h.freed(ctx)
}

// freed has the controller manager take the range for occupied again, or removes the Node
// of the range after the last host.
func (h *Hosts) freed(ctx context.Context) error {
	nodes := h.cluster.Client().CoreV1().Nodes()
	list, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: Label, Limit: 2})
	if err != nil {
		return h.cluster.Wrap("list the hosts", err)
	}
	if len(list.Items) == 1 && list.Items[0].Name == externalhost.RangeName && len(h.declared()) == 0 {
		err = nodes.Delete(ctx, externalhost.RangeName, metav1.DeleteOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			err = h.cluster.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, externalhost.RangeName, metav1.DeleteOptions{})
		}
	} else {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, occupiedAt, h.now().UTC().Format(time.RFC3339Nano))
		_, err = nodes.Patch(ctx, externalhost.RangeName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: cluster.FieldManager})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return h.cluster.Wrap("keep the range of hosts occupied", err)
}

func (h *Hosts) declared() []pools.ExternalHost {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hosts
}
