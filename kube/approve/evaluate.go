package approve

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

	"drover/kube/token"
)

type (
	csr     = certificatesv1.CertificateSigningRequest
	csrList = certificatesv1.CertificateSigningRequestList
)

const (
	nodeUser   = "system:node:"
	nodesGroup = "system:nodes"

	maxRequest = 16 << 10 // bytes of a CertificateSigningRequest; kubelets make 2 to 5 KiB
	maxPEM     = 6 << 10  // bytes of the request in it; a key of 8192 bits makes 3 KiB
	maxUID     = 128      // bytes; UIDs have 36
)

// verdict is what the approver does with a certificate request.
type verdict string

// The verdicts; metrics show them by these names.
const (
	approved verdict = "approved"
	denied   verdict = "denied"  // made by a token of drover's, but not for the token's purpose
	left     verdict = "left"    // not for this drover to approve, but logged
	foreign  verdict = "foreign" // not drover's
	settled  verdict = "settled" // decided on before
)

// decision is a verdict with its reason.
type decision struct {
	verdict verdict
	node    string // of the certificate; empty if unknown
	token   string // the ID of the client's token; empty without one
	shared  bool   // the token is for all nodes of the cluster
	serving bool
	until   time.Time // end of the token
	why     string
}

// once reports whether the token of the request is good for one certificate only.
func (d decision) once() bool { return !d.serving && !d.shared }

// deny returns d as denied, with a reason.
func (d decision) deny(format string, args ...any) decision {
	d.verdict, d.why = denied, fmt.Sprintf(format, args...)
	return d
}

// leave returns d as left alone, with a reason.
func (d decision) leave(format string, args ...any) decision {
	d.verdict, d.why = left, fmt.Sprintf(format, args...)
	return d
}

// has reports whether a request has a condition.
func has(r *csr, condition certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == condition })
}

// decided reports whether a request is approved or denied already.
func decided(r *csr) bool {
	return len(r.Status.Certificate) > 0 || has(r, certificatesv1.CertificateApproved) || has(r, certificatesv1.CertificateDenied)
}

// oversized reports whether a request is too large to be that of a kubelet. drover does
// not look at such requests: a hostile API server can send any number of them.
func oversized(r *csr) bool { return len(r.UID) > maxUID || r.Size() > maxRequest }

// evaluate decides on a request by its content alone. For an approved request the
// caller still has to check that the token was not used before, and that the farm has
// the node.
func evaluate(r *csr, key []byte, now time.Time) decision {
	switch r.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return evaluateClient(r, key, now)
	case certificatesv1.KubeletServingSignerName:
		return evaluateServing(r)
	}
	return decision{verdict: foreign}
}

// evaluateClient evaluates a request for the client certificate of a kubelet. Requests
// to renew it come from the node itself; the cluster's own approver decides on those.
func evaluateClient(r *csr, key []byte, now time.Time) decision {
	id, isToken := strings.CutPrefix(r.Spec.Username, bootstrapapi.BootstrapUserPrefix)
	seal, isGrant := token.ReadGrant(r.Spec.Groups)
	if !isToken || !isGrant || len(id) != bootstrapapi.BootstrapTokenIDBytes {
		return decision{verdict: foreign}
	}
	d := decision{token: id, until: seal.Expires}
	if decided(r) {
		d.verdict = settled
		return d
	}
	if !seal.ClaimsKey(key) {
		return d.leave("its token was minted by another drover, or before the key of this one was lost")
	}
	for _, g := range r.Spec.Groups {
		if g != token.JoinGroup && g != token.BootGroup+seal.Text && g != bootstrapapi.BootstrapDefaultGroup && g != "system:authenticated" {
			return d.deny("its token has the group %q, which drover gives to none", g)
		}
	}
	req, node, err := readRequest(r.Spec.Request)
	if err != nil {
		return d.deny("%v", err)
	}
	d.node = node
	switch {
	case seal.Verify(key, id, ""):
		d.shared = true
	case !seal.Verify(key, id, node):
		return d.deny("its token was not minted for a node of this name")
	}
	switch {
	case now.After(seal.Expires):
		return d.deny("its token expired at %s", seal.Expires.UTC().Format(time.RFC3339))
	case len(req.Extensions) > 0:
		return d.deny("a kubelet's client certificate has no names beside its subject, and no extensions; this one asks for some")
	case !usages(r.Spec.Usages, certificatesv1.UsageClientAuth):
		return d.deny("it asks for usages %v, not for those of a client", r.Spec.Usages)
	}
	d.verdict = approved
	return d
}

// evaluateServing evaluates a request for the serving certificate of a kubelet. The
// node itself makes it, without a token.
func evaluateServing(r *csr) decision {
	d := decision{serving: true}
	node, isNode := strings.CutPrefix(r.Spec.Username, nodeUser)
	if !isNode || !slices.Contains(r.Spec.Groups, nodesGroup) {
		d.verdict = foreign
		return d
	}
	if d.node = node; decided(r) {
		d.verdict = settled
		return d
	}
	req, subject, err := readRequest(r.Spec.Request)
	switch {
	case err != nil:
		return d.leave("%v", err)
	case subject != node:
		return d.leave("node %q asks for a certificate of node %q", node, subject)
	case !usages(r.Spec.Usages, certificatesv1.UsageServerAuth):
		return d.leave("it asks for usages %v, not for those of a server", r.Spec.Usages)
	case len(req.EmailAddresses) > 0 || len(req.URIs) > 0:
		return d.leave("it asks for e-mail addresses or URIs")
	case slices.ContainsFunc(req.DNSNames, func(name string) bool { return name != node }):
		return d.leave("it asks for the names %q, of which only the node's own would do", req.DNSNames)
	case len(req.DNSNames)+len(req.IPAddresses) == 0:
		return d.leave("it asks for no name and no address")
	}
	for _, e := range req.Extensions {
		if !e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) { // subjectAltName
			return d.leave("it asks for the extension %s", e.Id)
		}
	}
	d.verdict = approved
	return d
}

// foreignAddresses returns the addresses in a request for a serving certificate that
// are not in own.
func foreignAddresses(r *csr, own []netip.Addr) (others []netip.Addr, err error) {
	req, _, err := readRequest(r.Spec.Request)
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

// readRequest parses a PKCS #10 request in PEM, verifies its signature and key, and
// returns the name of the node in its subject.
func readRequest(text []byte) (*x509.CertificateRequest, string, error) {
	if len(text) > maxPEM {
		return nil, "", errors.New("its certificate request is too large")
	}
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

// checkKey refuses public keys that are weak, huge or of an unknown kind.
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

// usages reports whether a request is for one purpose and for signatures only.
// Requests with RSA keys have key encipherment too.
func usages(have []certificatesv1.KeyUsage, purpose certificatesv1.KeyUsage) bool {
	for _, u := range have {
		if u != purpose && u != certificatesv1.UsageDigitalSignature && u != certificatesv1.UsageKeyEncipherment {
			return false
		}
	}
	return slices.Contains(have, purpose) && slices.Contains(have, certificatesv1.UsageDigitalSignature)
}

// conditionOf returns the condition that the approver adds to a request.
func conditionOf(d decision, now time.Time) certificatesv1.CertificateSigningRequestCondition {
	c := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "DroverApproved",
		Message: fmt.Sprintf("drover minted token %s for node %s", d.token, d.node),
	}
	switch {
	case d.verdict == denied:
		c.Type, c.Reason, c.Message = certificatesv1.CertificateDenied, "DroverDenied", "drover: "+d.why
	case d.serving:
		c.Message = fmt.Sprintf("drover gave node %s this name and these addresses", d.node)
	case d.shared:
		c.Message = fmt.Sprintf("drover minted token %s for all nodes, and expects node %s to boot", d.token, d.node)
	}
	c.LastUpdateTime.Time = now
	return c
}
