package credentials

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"drover/internal/wait"
	"drover/kube/client"
	"drover/kube/cluster"
)

const (
	interval   = time.Minute // between two looks at a kubeconfig
	maxDelay   = time.Hour   // between two tries
	tryTimeout = time.Minute // of one try
)

// Renewer renews drover's token for one cluster.
type Renewer struct {
	Cluster *cluster.Cluster
	File    string // the kubeconfig of Cluster; empty: it is in a Secret
	Store   *Store // its Token is Cluster.Renewed
	Log     *slog.Logger
	Now     func() time.Time
	// Interval is the time between two looks at the kubeconfig, and from the first failure
	// to the next try. Zero is a minute.
	Interval time.Duration

	mu     sync.Mutex
	renews bool  // the credentials are a token that drover can renew
	err    error // of the last try

	tried string        // the token that was to be renewed, or was renewed, at the last try
	delay time.Duration // from a try that failed to the next one
	next  time.Time
}

// Status reports whether the credentials are a token that drover can renew, and why the last
// try failed.
func (r *Renewer) Status() (renews bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.renews, r.err
}

func (r *Renewer) set(renews bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renews, r.err = renews, err
}

// Run renews the token until ctx is done.
func (r *Renewer) Run(ctx context.Context) {
	if r.Interval == 0 {
		r.Interval = interval
	}
	r.Cluster.AwaitSecret(ctx)
	for ctx.Err() == nil {
		r.look(ctx)
		_ = wait.Sleep(ctx, r.Interval)
	}
}

// look renews the token if it is time.
func (r *Renewer) look(ctx context.Context) {
	client := r.Cluster.Client()
	bearer := cluster.BearerOf(client)
	now := r.Now()
	old, ok := parse(bearer.Used)
	switch {
	case !ok || !now.Before(old.End): // nobody renews a token that has ended
		r.set(false, nil)
		return
	case bearer.Used == r.tried && now.Before(r.next):
		return
	case now.Before(RenewAt(old.Begin, old.End)):
		r.set(true, nil)
		return
	}
	limited, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	where, end, err := r.renew(limited, client, bearer, old)
	if ctx.Err() != nil {
		return
	}
	r.set(true, err)
	if err == nil {
		r.Log.Info("drover's token for a cluster renewed", "until", end.UTC().Format(time.RFC3339), "in", where)
		return
	}
	r.postpone(bearer.Used, old.End.Sub(now))
	r.Log.Warn("drover's token for a cluster not renewed", "until", old.End.UTC().Format(time.RFC3339), "again in", r.delay, "err", err)
}

// postpone sets the time of the next try, twice as far away as the one before. There are
// several tries before the token ends.
func (r *Renewer) postpone(token string, left time.Duration) {
	if r.tried != token {
		r.delay = r.Interval / 2
	}
	r.tried = token
	r.delay = max(r.Interval, min(2*r.delay, maxDelay, left/10))
	r.next = r.Now().Add(r.delay)
}

// renew asks for a token for as long as the old one was good for, tries it, and stores it.
func (r *Renewer) renew(ctx context.Context, client client.Interface, bearer cluster.Bearer, old claims) (where string, end time.Time, err error) {
	token, _, err := Request(ctx, client, old.Account, old.End.Sub(old.Begin))
	if err != nil {
		return "", end, r.Cluster.Wrap("renew the token of ServiceAccount "+old.Account.String(), err)
	}
	c, ok := parse(token)
	switch {
	case !ok || c.Account != old.Account:
		return "", end, errors.New("the API server has answered with something else than a token of ServiceAccount " + old.Account.String())
	case !r.Now().Before(c.End):
		return "", end, fmt.Errorf("the API server's new token has ended already, at %s: compare the clocks of the two hosts", c.End.UTC().Format(time.RFC3339))
	}
	newer, err := cluster.WithToken(client, token)
	if err == nil {
		_, err = newer.ServerVersion(ctx)
	}
	if err != nil {
		return "", end, r.Cluster.WrapSecret("try the new token", err, token)
	}
	if where, err = r.store(bearer.Given, token); err == nil {
		// By clocks that differ the new token could be due at once.
		r.tried, r.next = token, r.Now().Add(c.End.Sub(c.Begin)/10)
	}
	return where, c.End, err
}

// store stores a token in place of the one that the kubeconfig has.
func (r *Renewer) store(given, token string) (where string, err error) {
	if r.File != "" {
		err := rewrite(r.File, given, token)
		if err == nil {
			return "its kubeconfig", nil
		}
		if !errors.Is(err, errForeign) {
			r.Log.Debug("cannot write the kubeconfig of a cluster", "err", err)
		}
	}
	if err := r.Store.Set(r.Cluster.Conf.Name, given, token); err != nil {
		return "", fmt.Errorf("store the new token: %w", err)
	}
	r.Cluster.Redial()
	return "the state directory", nil
}
