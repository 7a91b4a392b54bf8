package approve

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/kube/cluster"
	"drover/kube/node"
	"drover/pools"
	"drover/pools/resolve"
)

// decide completes a decision with the state of the farm and the cluster, and writes
// it.
func (a *Approver) decide(ctx context.Context, d decision, r *csr) (decision, error) {
	if d.verdict == settled { // approved without a record
		_, err := a.use(ctx, d, r.UID)
		return d, err
	}
	if d.verdict == approved {
		var err error
		switch {
		case d.serving:
			d, err = a.checkAddresses(ctx, d, r)
		case d.shared:
			d, err = a.checkExpected(ctx, d)
		default:
			d, err = a.checkOwned(ctx, d)
		}
		if err == nil && d.verdict == approved && d.once() {
			d, err = a.use(ctx, d, r.UID) // last: after it the token is good for no other request
		}
		if err != nil || d.verdict == left {
			return d, err
		}
	}
	done, err := a.write(ctx, r, conditionOf(d, a.Now()))
	if !done && err == nil {
		d.verdict = settled
	}
	return d, err
}

// write adds a condition to a request. It returns false if the request was deleted or
// another client has decided on it.
func (a *Approver) write(ctx context.Context, r *csr, c certificatesv1.CertificateSigningRequestCondition) (bool, error) {
	var err error
	uid, requests := r.UID, a.Client().CertificatesV1().CertificateSigningRequests()
	for range 5 {
		r = r.DeepCopy()
		r.Status.Conditions = append(r.Status.Conditions, c)
		_, err = requests.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{FieldManager: cluster.FieldManager})
		if !apierrors.IsConflict(err) {
			break
		}
		if r, err = requests.Get(ctx, r.Name, metav1.GetOptions{}); err != nil {
			break
		}
		if r.UID != uid || decided(r) {
			return false, nil
		}
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, a.Wrap("decide on a certificate request", err)
}

// plan returns the Plan of a node of this cluster, or nil.
func (a *Approver) plan(name string) *resolve.Plan {
	if a.Machines == nil {
		return nil
	}
	if p := a.Machines.Named(name); p != nil && p.Node == name && p.Cluster == a.Conf.Name {
		return p
	}
	return nil
}

// checkExpected denies a request by a shared token unless its node belongs to the
// cluster, boots now, and has no certificate yet.
func (a *Approver) checkExpected(ctx context.Context, d decision) (decision, error) {
	switch {
	case a.Conf.Token.Mode != pools.Shared:
		return d.deny("the cluster has no shared tokens any more"), nil
	case a.plan(d.node) == nil:
		return d.deny("no node of this name is to join this cluster"), nil
	case !a.Machines.Booting(d.node):
		return d.deny("no machine of this name boots now"), nil
	}
	n, err := node.Get(ctx, a.Cluster, d.node)
	if apierrors.IsNotFound(err) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	if _, ready := node.StateOf(n); ready {
		return d.deny("its Node is Ready, so it has a certificate"), nil
	}
	return a.owned(d, n), nil
}

// checkOwned denies a request in the name of a Node that drover does not own. [Clusters.Join] gives
// no token for one; the Node may have come since then.
func (a *Approver) checkOwned(ctx context.Context, d decision) (decision, error) {
	n, err := node.Get(ctx, a.Cluster, d.node)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return d, nil
	case err != nil:
		return d, err
	}
	return a.owned(d, n), nil
}

func (a *Approver) owned(d decision, n *corev1.Node) decision {
	if why := node.Foreign(a.Key, n); why != "" {
		return d.deny("%s", why)
	}
	return d
}

// checkAddresses leaves a request for a serving certificate alone unless it is for one
// of drover's nodes and only for that node's own addresses.
func (a *Approver) checkAddresses(ctx context.Context, d decision, r *csr) (decision, error) {
	p := a.plan(d.node)
	if p == nil {
		return d.leave("no node of this name is to be in this cluster"), nil
	}
	own := a.addresses(p)
	others, err := foreignAddresses(r, own)
	switch {
	case err != nil:
		return d.leave("%v", err), nil
	case len(own) == 0 || len(others) > 0:
		return d.leave("it asks for the addresses %v; the node's are %v", others, own), nil
	}
	for _, addr := range own { // also of a node from before the config named the address
		if what := p.Infrastructure(addr); what != "" {
			return d.leave("%s is the address of %s", addr, what), nil
		}
	}
	n, err := node.Get(ctx, a.Cluster, d.node)
	switch {
	case apierrors.IsNotFound(err): // a kubelet sends the request before it registers the Node
		return d, nil
	case err != nil:
		return d, err
	}
	if why := node.Foreign(a.Key, n); why != "" {
		return d.leave("%s", why), nil
	}
	return d, nil
}

// addresses returns the addresses of the node of a Plan, of both families.
func (a *Approver) addresses(p *resolve.Plan) (own []netip.Addr) {
	all := []netip.Addr{p.Address, p.Address6}
	if a.Addresses != nil {
		all = append(all, a.Addresses(p.MAC)...)
	}
	for text := range strings.SplitSeq(p.KubeletArgs["node-ip"], ",") { // two where the cluster has two families
		if ip, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil {
			all = append(all, ip)
		}
	}
	for _, addr := range all {
		if addr = addr.Unmap(); addr.IsValid() && !slices.Contains(own, addr) {
			own = append(own, addr)
		}
	}
	return own
}

// report logs a request and calls OnRequest, once for each verdict.
func (a *Approver) report(d decision, r *csr, err error) {
	before, _ := a.seen.Get(r.UID)
	if err == nil {
		a.seen.Add(r.UID, d.verdict, seenTTL)
	}
	if before == d.verdict && err == nil || d.verdict == settled {
		return
	}
	req := Request{Cluster: a.Conf.Name, Name: r.Name, Node: d.node, Serving: d.serving, Result: string(d.verdict), Why: d.why}
	log := a.Log.With("request", r.Name, "by", r.Spec.Username, "node", d.node)
	switch {
	case err != nil:
		req.Result, req.Why = "error", err.Error()
	case d.verdict == approved:
		log.Info("certificate request approved", "serving", d.serving)
	case d.verdict == foreign:
		log.Debug("certificate request is not drover's")
	case a.lines.Allow(slog.LevelWarn, "certificate request not approved"):
		log.Warn("certificate request not approved", "verdict", d.verdict, "why", d.why)
	}
	if a.OnRequest != nil {
		a.OnRequest(req)
	}
}
