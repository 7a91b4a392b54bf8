package httpboot

import (
	"errors"
	"io"
	"net/http"

	"drover/pools"
)

// servePeer answers another server of the farm. Nothing of the request counts before its
// signature.
func (h *handler) servePeer(rec *recorder, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(rec.ResponseWriter, r.Body, pools.MaxPeerBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return &httpError{Code: http.StatusBadRequest, Msg: "the body cannot be read", Err: err}
	}
	answer, signed, err := h.server.Peers(body, r.Header.Get(pools.SignatureHeader))
	if err != nil {
		return refuseFor(RefusedSignature, http.StatusForbidden, "%v", err)
	}
	rec.Header().Set(pools.SignatureHeader, signed)
	return writeText(rec, "application/json", answer)
}
