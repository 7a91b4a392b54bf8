package kube

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
)

const (
	nodeUser   = "system:node:"
	nodesGroup = "system:nodes"
)

// verdict is what the approver does with a certificate request.
type verdict string

// The verdicts; metrics have them as they are.
const (
	approved verdict = "approved"
	denied   verdict = "denied"  // it came by a token of drover's, and is not what that is for
	left     verdict = "left"    // it is not for this drover to approve, but is worth a line in the log
	foreign  verdict = "foreign" // none of drover's business
	settled  verdict = "settled" // it was decided on before
)

// ruling is a verdict with its reason.
type ruling struct {
	verdict verdict
	node    string // whom the certificate is for, if that is known
	token   string // id; empty unless a token made the request
	shared  bool   // of all nodes of the cluster
	serving bool
	until   time.Time // the token's end
	why     string
}

func (r ruling) deny(format string, args ...any) ruling {
	r.verdict, r.why = denied, fmt.Sprintf(format, args...)
	return r
}

func (r ruling) leave(format string, args ...any) ruling {
	r.verdict, r.why = left, fmt.Sprintf(format, args...)
	return r
}

// decided tells whether somebody has decided on a request.
func decided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) > 0 || slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
	})
}

func wasApproved(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
}

// judge decides on a request from what it says itself. Approved means that it
// may be: whether its token was used before, and whether the farm has such a
// node, is for the caller to see.
func judge(csr *certificatesv1.CertificateSigningRequest, key []byte, now time.Time) ruling {
	switch csr.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return judgeClient(csr, key, now)
	case certificatesv1.KubeletServingSignerName:
		return judgeServing(csr)
	}
	return ruling{verdict: foreign}
}

// judgeClient is for the certificate by which a kubelet is its node. Requests to
// renew it come from the node itself; the cluster's own approver has them.
func judgeClient(csr *certificatesv1.CertificateSigningRequest, key []byte, now time.Time) ruling {
	id, isToken := strings.CutPrefix(csr.Spec.Username, bootstrapapi.BootstrapUserPrefix)
	seal, isGrant := readGrant(csr.Spec.Groups)
	if !isToken || !isGrant {
		return ruling{verdict: foreign}
	}
	r := ruling{token: id, until: seal.expires}
	if decided(csr) {
		r.verdict = settled
		return r
	}
	if !seal.by(key) {
		return r.leave("its token was minted by another drover, or before the key of this one was lost")
	}
	for _, g := range csr.Spec.Groups {
		if g != joinGroup && g != bootGroup+seal.text && g != bootstrapapi.BootstrapDefaultGroup && g != "system:authenticated" {
			return r.deny("its token has the group %q, which drover gives to none", g)
		}
	}
	req, node, err := readRequest(csr.Spec.Request)
	if err != nil {
		return r.deny("%v", err)
	}
	r.node = node
	switch {
	case seal.of(key, id, ""):
		r.shared = true
	case !seal.of(key, id, node):
		return r.deny("its token was not minted for a node of this name")
	}
	switch {
	case now.After(seal.expires):
		return r.deny("its token expired at %s", seal.expires.UTC().Format(time.RFC3339))
	case len(req.Extensions) > 0:
		return r.deny("a kubelet's client certificate has no names beside its subject, and no extensions; this one asks for some")
	case !usages(csr.Spec.Usages, certificatesv1.UsageClientAuth):
		return r.deny("it asks for usages %v, not for those of a client", csr.Spec.Usages)
	}
	r.verdict = approved
	return r
}

// judgeServing is for the certificate by which a kubelet is a server. It is
// asked for as the node, so there is no token to go by.
func judgeServing(csr *certificatesv1.CertificateSigningRequest) ruling {
	r := ruling{serving: true}
	node, isNode := strings.CutPrefix(csr.Spec.Username, nodeUser)
	if !isNode || !slices.Contains(csr.Spec.Groups, nodesGroup) {
		r.verdict = foreign
		return r
	}
	if r.node = node; decided(csr) {
		r.verdict = settled
		return r
	}
	req, subject, err := readRequest(csr.Spec.Request)
	switch {
	case err != nil:
		return r.leave("%v", err)
	case subject != node:
		return r.leave("node %q asks for a certificate of node %q", node, subject)
	case !usages(csr.Spec.Usages, certificatesv1.UsageServerAuth):
		return r.leave("it asks for usages %v, not for those of a server", csr.Spec.Usages)
	case len(req.EmailAddresses) > 0 || len(req.URIs) > 0:
		return r.leave("it asks for e-mail addresses or URIs")
	case slices.ContainsFunc(req.DNSNames, func(name string) bool { return name != node }):
		return r.leave("it asks for the names %q, of which only the node's own would do", req.DNSNames)
	case len(req.DNSNames)+len(req.IPAddresses) == 0:
		return r.leave("it asks for no name and no address")
	}
	for _, e := range req.Extensions {
		if !e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) { // subjectAltName
			return r.leave("it asks for the extension %s", e.Id)
		}
	}
	r.verdict = approved
	return r
}

// foreignAddresses returns the addresses that a request for a serving certificate
// names and that are not among those of its node.
func foreignAddresses(csr *certificatesv1.CertificateSigningRequest, own []netip.Addr) (others []netip.Addr, err error) {
	req, _, err := readRequest(csr.Spec.Request)
	if err != nil {
		return nil, err
	}
	for _, ip := range req.IPAddresses {
		addr, ok := netip.AddrFromSlice(ip)
		if addr = addr.Unmap(); !ok || !slices.Contains(own, addr) {
			others = append(others, addr)
		}
	}
	return others, nil
}

// readRequest reads a PKCS #10 request and returns the name of the node that its
// subject is.
func readRequest(text []byte) (*x509.CertificateRequest, string, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, "", errors.New("it is not one certificate request in PEM")
	}
	req, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, "", errors.New("its certificate request cannot be read")
	}
	if err := req.CheckSignature(); err != nil {
		return nil, "", errors.New("its certificate request is not signed by its key")
	}
	if err := checkKey(req.PublicKey); err != nil {
		return nil, "", err
	}
	name, ok := strings.CutPrefix(req.Subject.CommonName, nodeUser)
	if !ok || name == "" || len(req.Subject.Names) != 2 || !slices.Equal(req.Subject.Organization, []string{nodesGroup}) {
		return nil, "", fmt.Errorf("its subject %.200q is not that of a node", req.Subject)
	}
	return req, name, nil
}

func checkKey(key any) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve.Params().BitSize >= 256 {
			return nil
		}
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits >= 2048 && bits <= 8192 {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return errors.New("its key is too weak, too large or of an unknown kind")
}

// usages tells whether a request is for one purpose and for signatures, and for
// nothing else. RSA keys come with key encipherment too.
func usages(have []certificatesv1.KeyUsage, purpose certificatesv1.KeyUsage) bool {
	for _, u := range have {
		if u != purpose && u != certificatesv1.UsageDigitalSignature && u != certificatesv1.UsageKeyEncipherment {
			return false
		}
	}
	return slices.Contains(have, purpose) && slices.Contains(have, certificatesv1.UsageDigitalSignature)
}

// conditionOf is what the approver writes into a request.
func conditionOf(r ruling, now time.Time) certificatesv1.CertificateSigningRequestCondition {
	c := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "DroverApproved",
		Message: fmt.Sprintf("drover minted token %s for node %s", r.token, r.node),
	}
	switch {
	case r.verdict == denied:
		c.Type, c.Reason, c.Message = certificatesv1.CertificateDenied, "DroverDenied", "drover: "+r.why
	case r.serving:
		c.Message = fmt.Sprintf("drover gave node %s this name and these addresses", r.node)
	case r.shared:
		c.Message = fmt.Sprintf("drover minted token %s for all nodes, and expects node %s to boot", r.token, r.node)
	}
	c.LastUpdateTime.Time = now
	return c
}
