package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"drover/pools"
	"drover/web/answer"
)

// etag returns the ETag of a node: it changes with the node itself, and not with its
// status. Options of its power are no part of it: a digest would confirm a guess of a password.
func etag(n *pools.PoolNode) string {
	b, _ := json.Marshal(withoutOptions(*n)) // it was read from JSON or YAML
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// ifMatch returns an error with status 412 if the If-Match of a request (RFC 9110, section
// 13.1.1) does not have the ETag of a node, and one with status 400 if the header is empty, as
// a program with an empty variable sends it.
func ifMatch(r *http.Request, n *pools.PoolNode) error {
	all := r.Header.Values("If-Match")
	header := strings.Join(all, ",")
	if len(all) == 0 || header == "*" {
		return nil
	}
	tag := etag(n)
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		if part == tag {
			return nil
		}
		if text := strings.TrimPrefix(part, "W/"); len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
			return answer.BadParameter("If-Match", "send the ETag of the node, with its quotes", "If-Match %q is no ETag", header)
		}
	}
	return &answer.Error{
		Code: http.StatusPreconditionFailed, Name: answer.CodeChanged, Field: "If-Match", Remedy: "read the node again",
		Msg: fmt.Sprintf("node %q is another one than If-Match says: its ETag is %s", n.Name, tag),
	}
}

// unmatched returns err with status 412 if the request has an If-Match and the node was
// changed after it was compared.
func unmatched(r *http.Request, err error) error {
	if r.Header.Get("If-Match") == "" || !errors.Is(err, pools.ErrChanged) {
		return err
	}
	return &answer.Error{Code: http.StatusPreconditionFailed, Name: answer.CodeChanged, Field: "If-Match", Remedy: "read the node again", Msg: err.Error()}
}
