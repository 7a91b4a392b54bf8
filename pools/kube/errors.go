package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ClusterError is a cluster that cannot do its part of a join now. Trying
// again helps once the cause is gone.
type ClusterError struct {
	Cluster string
	Doing   string // "mint a join token"
	Hint    string // what is wrong in words, and what to do
	Err     error  // may be nil
	Retry   time.Duration
}

func (e *ClusterError) Error() string {
	msg := fmt.Sprintf("cluster %q: %s: %s", e.Cluster, e.Doing, e.Hint)
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Unwrap returns the cause.
func (e *ClusterError) Unwrap() error { return e.Err }

// RetryAfter returns how long to wait before asking again.
func (e *ClusterError) RetryAfter() time.Duration { return e.Retry }

// How long a node is told to wait: little when the cluster is likely to be back
// soon, longer when an operator has to do something.
const (
	retrySoon  = 5 * time.Second
	retryLater = 30 * time.Second
)

// errorf makes the error of a request that failed, with what its cause means.
func (c *cluster) errorf(doing string, err error) error {
	if _, ok := errors.AsType[*ClusterError](err); ok {
		return err
	}
	e := &ClusterError{Cluster: c.conf.Name, Doing: doing, Err: err, Retry: retryLater}
	switch {
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
		e.Hint, e.Retry = "the API server is busy or not well", retrySoon
	case errors.Is(err, context.Canceled):
		e.Hint, e.Retry = "given up", retrySoon
	case errors.Is(err, context.DeadlineExceeded), timedOut(err):
		e.Hint, e.Retry = "the API server does not answer in time", retrySoon
	case apierrors.ReasonForError(err) != "":
		e.Hint = "the API server refuses"
	default:
		e.Hint, e.Retry = "the API server is unreachable", retrySoon
	}
	return e
}

// timedOut tells whether a step of a connection took too long, such as its TLS
// handshake.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// redact returns err without secret in its text. An API server has no reason to
// repeat what it was sent, but admission webhooks may say anything.
func redact(err error, secret string) error {
	if err == nil || !strings.Contains(err.Error(), secret) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), secret, "(secret)"))
}
