package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drover/internal/printable"
)

// maxCause is the longest text of a cause, in bytes. An API server may send any text.
const maxCause = 1000

// Error is a failed action on a cluster. The action can be tried again once the cause
// is gone.
type Error struct {
	Cluster string
	Doing   string        // the action: "mint a join token"
	Hint    string        // the meaning of the error, and what to do
	Err     error         // may be nil
	Retry   time.Duration // the delay before the next try
}

func (e *Error) Error() string {
	msg := fmt.Sprintf("cluster %q: %s: %s", e.Cluster, e.Doing, e.Hint)
	if e.Err != nil {
		msg += ": " + printable.Line(e.Err.Error(), maxCause)
	}
	return msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// RetryAfter returns the delay before the next try.
func (e *Error) RetryAfter() time.Duration { return e.Retry }

// The delays after which a node tries again: soon if the cluster is likely to recover,
// later if an operator has to act first.
const (
	RetrySoon  = 5 * time.Second
	RetryLater = 30 * time.Second
)

// Wrap returns the error of a request as an [*Error] with a hint at its cause. It
// returns nil for nil. If err wraps an [*Error], it returns that one.
func (c *Cluster) Wrap(doing string, err error) error {
	if inner, ok := errors.AsType[*Error](err); ok {
		return inner
	}
	if err == nil {
		return nil
	}
	e := &Error{Cluster: c.Conf.Name, Doing: doing, Err: err, Retry: RetryLater}
	refused, isRefused := errors.AsType[*RefusedError](err)
	switch {
	case isRefused:
		e.Hint, e.Err = "the API server is broken or hostile", refused
	case apierrors.IsUnauthorized(err):
		e.Hint = "the cluster does not know the kubeconfig's credentials, or they expired"
	case apierrors.IsForbidden(err):
		e.Hint = "the kubeconfig's user lacks the right, apply deploy/rbac.yaml in the cluster"
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "'drover-"):
		e.Hint = "the admission policies of deploy/rbac.yaml refuse it; are they of another version of drover, or of another approver? \"drover cluster prepare\" applies them anew"
	case apierrors.IsInvalid(err):
		e.Hint = "the cluster's admission refuses it"
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		e.Hint, e.Retry = "the API server is busy or not well", RetrySoon
	case errors.Is(err, context.Canceled):
		e.Hint, e.Retry = "given up", RetrySoon
	case errors.Is(err, context.DeadlineExceeded), timedOut(err):
		e.Hint, e.Retry = "the API server does not answer in time", RetrySoon
	case apierrors.ReasonForError(err) != "":
		e.Hint = "the API server refuses"
	default:
		e.Hint, e.Retry = "the API server is unreachable", RetrySoon
	}
	return e
}

// IsDown reports whether an error of [Cluster.Wrap] is one of the cluster, for whatever request:
// the API server does not answer, or answers nobody.
func IsDown(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok && (apierrors.ReasonForError(err) == metav1.StatusReasonUnknown || apierrors.IsTooManyRequests(err))
}

// timedOut reports whether a part of a connection, such as the TLS handshake, took too
// long.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// WrapSecret is [Cluster.Wrap] for a request that contained a secret. It removes the
// secret from the text, since an admission webhook may repeat the request in its
// answer.
func (c *Cluster) WrapSecret(doing string, err error, secret string) error {
	if err == nil || !strings.Contains(err.Error(), secret) {
		return c.Wrap(doing, err)
	}
	clean := errors.New(strings.ReplaceAll(err.Error(), secret, "(secret)"))
	return &Error{Cluster: c.Conf.Name, Doing: doing, Hint: "the API server refuses", Err: clean, Retry: RetryLater}
}
