package kube

import (
	"context"
	"errors"
	"net/netip"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/pools"
)

// decide completes a ruling by what the request does not say, and carries it
// out.
func (a *approver) decide(ctx context.Context, r ruling, csr *certificatesv1.CertificateSigningRequest) (ruling, error) {
	if r.verdict == approved {
		var err error
		switch {
		case r.serving:
			r, err = a.ownAddresses(ctx, r, csr)
		case r.shared:
			r, err = a.expected(ctx, r)
		case !a.claim(r, csr.UID):
			r = r.deny("its token was used for another certificate request before; who got that one?")
		}
		if err != nil || r.verdict == left {
			return r, err
		}
	}
	done, err := a.write(ctx, csr, conditionOf(r, a.now()))
	if !done && err == nil {
		r.verdict = settled
	}
	return r, err
}

// write puts a decision into a request. It returns false for a request that is
// gone, or that somebody else has decided on.
func (a *approver) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, c certificatesv1.CertificateSigningRequestCondition) (bool, error) {
	const doing = "decide on a certificate request"
	client, err := a.connect()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	uid, requests := csr.UID, client.CertificatesV1().CertificateSigningRequests()
	for range 5 {
		csr = csr.DeepCopy()
		csr.Status.Conditions = append(csr.Status.Conditions, c)
		_, err = requests.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{FieldManager: fieldManager})
		if !apierrors.IsConflict(err) {
			break
		}
		if csr, err = requests.Get(ctx, csr.Name, metav1.GetOptions{}); err != nil {
			break
		}
		if csr.UID != uid || decided(csr) {
			return false, nil
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, a.errorf(doing, err)
	}
	return true, nil
}

// expected keeps a shared token to nodes of the farm that are not there.
func (a *approver) expected(ctx context.Context, r ruling) (ruling, error) {
	c := a.clusters
	var p *pools.Plan
	if c.PlanOf != nil {
		p = c.PlanOf(r.node)
	}
	switch {
	case a.conf.Token.Mode != pools.Shared:
		return r.deny("the cluster has no shared tokens any more"), nil
	case p == nil || p.Node != r.node || p.Cluster != a.conf.Name:
		return r.deny("no node of this name is to join this cluster"), nil
	case c.Expected != nil && !c.Expected(r.node):
		return r.deny("no machine of this name boots now"), nil
	}
	n, err := a.node(ctx, r.node)
	if apierrors.IsNotFound(err) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if _, ready := see(n); ready {
		return r.deny("its Node is Ready, so it has a certificate"), nil
	}
	return r, nil
}

// ownAddresses makes sure that a serving certificate is for one of drover's
// nodes, and for no address but its own.
func (a *approver) ownAddresses(ctx context.Context, r ruling, csr *certificatesv1.CertificateSigningRequest) (ruling, error) {
	own := a.clusters.addressesOf(a.conf.Name, r.node)
	if len(own) == 0 {
		return r.leave("no node of this name is to be in this cluster"), nil
	}
	others, err := foreignAddresses(csr, own)
	switch {
	case err != nil:
		return r.leave("%v", err), nil
	case len(others) > 0:
		return r.leave("it asks for the addresses %v; the node's are %v", others, own), nil
	}
	n, err := a.node(ctx, r.node)
	switch {
	case apierrors.IsNotFound(err): // its kubelet asks before it registers the Node
	case err != nil:
		return r, err
	case n.Labels[markLabel] == "":
		return r.leave("its Node is none of drover's"), nil
	}
	return r, nil
}

// addressesOf returns the addresses of a node that is to be in that cluster.
func (c *Clusters) addressesOf(cluster, node string) (own []netip.Addr) {
	if c.PlanOf == nil {
		return nil
	}
	p := c.PlanOf(node)
	if p == nil || p.Node != node || p.Cluster != cluster {
		return nil
	}
	if p.Address.IsValid() {
		own = append(own, p.Address.Unmap())
	} else if c.AddressOf != nil {
		if addr, ok := c.AddressOf(p.MAC); ok {
			own = append(own, addr.Unmap())
		}
	}
	if ip, err := netip.ParseAddr(p.KubeletArgs["node-ip"]); err == nil {
		own = append(own, ip.Unmap())
	}
	return own
}

// report tells of a request, once for each verdict.
func (a *approver) report(r ruling, csr *certificatesv1.CertificateSigningRequest, err error) {
	a.mu.Lock()
	known := a.seen[csr.UID] == r.verdict && err == nil
	if err == nil {
		a.seen[csr.UID] = r.verdict
	}
	a.mu.Unlock()
	if known || r.verdict == settled || errors.Is(err, context.Canceled) {
		return
	}
	told := Request{Cluster: a.conf.Name, Name: csr.Name, Node: r.node, Serving: r.serving, Result: string(r.verdict), Why: r.why}
	log := a.log.With("request", csr.Name, "by", csr.Spec.Username, "node", r.node)
	switch {
	case err != nil:
		told.Result, told.Why = "error", err.Error()
	case r.verdict == approved:
		log.Info("certificate request approved", "serving", r.serving)
	case r.verdict == foreign:
		log.Debug("certificate request is not drover's")
	default:
		log.Warn("certificate request not approved", "verdict", r.verdict, "why", r.why)
	}
	if a.clusters.OnRequest != nil {
		a.clusters.OnRequest(told)
	}
}
