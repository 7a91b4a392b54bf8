package watch

import (
	"cmp"
	"net/http"
	"time"

	"drover/web/share"
)

// Revisions is a stream that tells that something has changed. It begins with the event alive,
// which comes again when the stream was silent for long. The event changed says that there is a
// new revision, and no more: clients ask for what they show themselves. Its ID is the revision.
type Revisions struct {
	Limit *share.Limit
	Of    []share.Share // of the clients that the limit counts the stream for
	Every time.Duration // between two looks, and so between two events
	// Look returns the revision now; false if the client may not know it any more.
	Look func() (revision string, ok bool)
}

// Serve sends the stream until the client leaves, takes nothing for half a minute, may not know
// more, or the server ends. A client has the revision of the header Last-Event-ID, or else
// If-None-Match, and gets no event for that one.
func (f *Revisions) Serve(w http.ResponseWriter, r *http.Request) error {
	release, err := wait(f.Limit, w, r, f.Of...)
	if err != nil {
		return err
	}
	defer release()
	s := newStream(w, 512)
	if r.Method == http.MethodHead {
		return nil
	}
	last := cmp.Or(r.Header.Get("Last-Event-ID"), r.Header.Get("If-None-Match"))
	s.send(last, "alive", nil)
	if s.flush() != nil {
		return nil
	}
	ticker := time.NewTicker(f.Every)
	defer ticker.Stop()
	for {
		now, ok := f.Look()
		switch {
		case !ok || now != last:
			last = now
			s.send(last, "changed", nil)
		case time.Since(s.spoke) >= silence:
			s.send(last, "alive", nil)
		}
		if s.flush() != nil || !ok {
			return nil
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-ending(r).Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Changed sends a stream of one event: that something has changed. It is for a client that may
// not know what.
func Changed(w http.ResponseWriter) {
	s := newStream(w, 512)
	s.send("", "changed", nil)
	_ = s.flush() // the client is gone
}
