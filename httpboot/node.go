package httpboot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"drover/internal/printable"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
)

// machine returns the Plan of the MAC in the path if the request comes from the address
// of that machine, else an error.
func (h *handler) machine(rec *recorder, r *http.Request) (*resolve.Plan, error) {
	mac, err := pools.ParseMAC(r.PathValue("mac"))
	if err != nil {
		return nil, refuse(http.StatusNotFound, "%v", err)
	}
	plan, err := h.server.Scripts.Machine(mac, addrOf(r.RemoteAddr))
	if plan == nil {
		return nil, refuseFor(RefusedMAC, http.StatusNotFound, "%v", err)
	}
	rec.identify(plan)
	return plan, err
}

// observe records a step of a boot that the server itself observed.
func (h *handler) observe(mac pools.MAC, e boots.Event) {
	if err := h.server.Boots.Report(mac, boots.Report{Event: e}); err != nil {
		h.server.Log.Warn("boot step not recorded", "mac", mac.String(), "step", string(e.Step), "err", err.Error())
	}
}

// boot is a request below /node/ from an authenticated node.
type boot struct {
	plan  *resolve.Plan
	addr  netip.Addr
	nonce string
	key   []byte // the public key that the boot is bound to; only for config and join
	id    string // the boot ID of the node's kernel; only for config and join
}

// claim checks the address, the nonce and the key of a config or join request, in this
// order. The first key binds the boot. Its owner may repeat a request, since an answer
// can get lost.
func (h *handler) claim(rec *recorder, r *http.Request) (*boot, error) {
	b, err := h.withNonce(rec, r)
	if err != nil {
		return nil, err
	}
	var req pools.KeyRequest
	if _, err := readJSON(rec, r, pools.MaxNodeRequest, &req); err != nil {
		return nil, err
	}
	if !isBootID(req.BootID) {
		return nil, refuse(http.StatusBadRequest, "bootID is not like that of a kernel")
	}
	// Before Claim: a boot that is bound to an unusable key would be lost.
	if _, err := pools.Seal(req.PublicKey, b.plan.MAC, "", nil); err != nil {
		return nil, refuse(http.StatusBadRequest, "publicKey is not an X25519 key of 32 bytes")
	}
	if err := h.server.Boots.Claim(b.plan.MAC, b.nonce, req.PublicKey); err != nil {
		return nil, bootError(err)
	}
	h.server.Scripts.Forget(b.plan.MAC) // the boot that was issued by TFTP is not reused
	b.key, b.id = req.PublicKey, req.BootID
	return b, nil
}

// isBootID reports whether s is empty, or a UUID in lower case as the kernel writes it.
func isBootID(s string) bool {
	return s == "" || len(s) == 36 && strings.Trim(s, "0123456789abcdef-") == ""
}

// withNonce checks the address of a request and the form of its nonce. [Boots] checks the
// nonce itself, which may be of another server's script.
func (h *handler) withNonce(rec *recorder, r *http.Request) (*boot, error) {
	plan, err := h.machine(rec, r)
	if err != nil {
		return nil, err
	}
	nonce := r.Header.Get(pools.NonceHeader)
	if len(nonce) < 16 || len(nonce) > 256 || strings.Trim(nonce, "0123456789abcdef") != "" {
		return nil, refuseFor(RefusedNonce, http.StatusForbidden, "header %s is not the nonce of a boot", pools.NonceHeader)
	}
	h.server.Boots.Adopt(plan, nonce)
	return &boot{plan: plan, addr: addrOf(r.RemoteAddr), nonce: nonce}, nil
}

// bootError returns the answer to an error of [Boots].
func bootError(err error) error {
	switch {
	case errors.Is(err, boots.ErrNonce):
		return refuseFor(RefusedNonce, http.StatusForbidden, "%v", boots.ErrNonce)
	case errors.Is(err, boots.ErrClaimed):
		return refuseFor(RefusedClaimed, http.StatusForbidden, "%v", boots.ErrClaimed)
	case errors.Is(err, boots.ErrUnsigned):
		return refuseFor(RefusedSignature, http.StatusForbidden, "%v", boots.ErrUnsigned)
	}
	return broken(err, "the boot cannot be recorded")
}

// referencesTimeout limits the time to read what the settings of a node refer to.
const referencesTimeout = 20 * time.Second

func (h *handler) serveConfig(rec *recorder, r *http.Request) error {
	b, err := h.claim(rec, r)
	if err != nil {
		return err
	}
	plan := *b.plan
	if !plan.Address.IsValid() { // of a catch-all pool: templates use its lease
		plan.Address = b.addr
	}
	ctx, cancel := context.WithTimeout(r.Context(), referencesTimeout)
	defer cancel()
	if err := h.aloneInCluster(ctx, b.plan); err != nil {
		return err
	}
	c, err := h.server.Config.Make(ctx, &plan)
	if err != nil {
		// The node repeats its request, and its boot goes on when the operator has mended it.
		h.observe(b.plan.MAC, boots.Event{Step: boots.StepConfig, Error: printable.Line(err.Error(), maxEventText)})
		return broken(err, "the config of this node cannot be made, see the server's log")
	}
	c.Time, c.EventKey = time.Now(), h.server.Boots.EventKey(b.plan.MAC, b.nonce)
	if plan.Gateway == "" { // boots of a gateway do not name its cluster
		c.Tenant.Former = h.server.Boots.Former(b.plan.MAC, b.nonce)
	}
	return writeSealed(rec, b, "config", c)
}

// aloneInCluster returns an error as long as the node of a plan may run elsewhere in its cluster.
// Anyone on the wire can begin a boot in the name of a running machine: that does not open its
// config, with its secrets, while its kubelet renews its Lease.
func (h *handler) aloneInCluster(ctx context.Context, p *resolve.Plan) error {
	if p.Cluster == "" {
		return nil
	}
	again, err := h.server.Joiner.Living(ctx, p)
	switch {
	case err != nil:
		h.observe(p.MAC, boots.Event{Step: boots.StepConfig, Error: printable.Line(err.Error(), maxEventText)})
		return joinError(p.Cluster, err)
	case again > 0:
		return &httpError{
			Code: http.StatusServiceUnavailable, RetryAfter: again + time.Second,
			Msg: fmt.Sprintf("the config waits %s until it is certain that no kubelet of this node runs any more", again.Round(time.Second)),
		}
	}
	return nil
}

func (h *handler) serveJoin(rec *recorder, r *http.Request) error {
	b, err := h.claim(rec, r)
	if err != nil {
		return err
	}
	if b.plan.Cluster == "" {
		return refuse(http.StatusConflict, "pool %q has no cluster to join", b.plan.Pool)
	}
	if _, running := h.joins.LoadOrStore(b.plan.MAC, true); running {
		return &httpError{Code: http.StatusServiceUnavailable, Msg: "a join of this node is under way", RetryAfter: 2 * time.Second}
	}
	defer h.joins.Delete(b.plan.MAC)
	ctx, cancel := context.WithTimeout(r.Context(), h.JoinTimeout)
	defer cancel()
	c, err := h.server.Joiner.Join(ctx, b.plan, b.addr, b.id)
	if err != nil {
		h.observe(b.plan.MAC, boots.Event{Step: boots.StepToken, Error: printable.Line(err.Error(), maxEventText)})
		return joinError(b.plan.Cluster, err)
	}
	// The boot ID is needed to follow the node after a restart of the server.
	h.observe(b.plan.MAC, boots.Event{Step: boots.StepToken, Detail: b.id})
	return writeSealed(rec, b, "join", c)
}

// joinError returns the answer to an error of the [Joiner], without its details.
func joinError(cluster string, err error) error {
	var temporary interface{ Temporary() bool }
	var after interface{ RetryAfter() time.Duration }
	e := &httpError{Code: http.StatusServiceUnavailable, Err: err, RetryAfter: 5 * time.Second}
	switch {
	case errors.As(err, &after):
		e.RetryAfter = min(max(after.RetryAfter(), time.Second), 5*time.Minute)
	case errors.As(err, &temporary) && temporary.Temporary():
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		return broken(err, "cluster %q cannot let this node in, see the server's log", cluster)
	}
	e.Msg = fmt.Sprintf("cluster %q cannot let this node in right now: ask again in %s", cluster, e.RetryAfter.Round(time.Second))
	return e
}

// writeSealed answers with v, sealed to the key of the boot.
func writeSealed(rec *recorder, b *boot, purpose string, v any) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return broken(err, "the answer cannot be written")
	}
	sealed, err := pools.Seal(b.key, b.plan.MAC, purpose, plain)
	if err != nil {
		return broken(err, "the answer cannot be sealed")
	}
	return writeText(rec, "application/octet-stream", sealed)
}

// readJSON reads a body of at most limit bytes strictly: one value without unknown fields. It
// returns the body. ServeHTTP has limited its time.
func readJSON(rec *recorder, r *http.Request, limit int64, v any) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(rec.ResponseWriter, r.Body, limit))
	msg := "the body cannot be read"
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		err, msg = dec.Decode(v), "the body is not the JSON expected here"
		if err == nil {
			if _, err = dec.Token(); errors.Is(err, io.EOF) {
				return body, nil
			}
			msg = "the body has more than one JSON value"
		}
	}
	tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isTooLarge:
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return nil, &httpError{Code: http.StatusBadRequest, Msg: msg, Err: err}
}
