// Package recorder ends the exchanges of the DHCP servers of both families: it reports each,
// and logs it as one line. A panic, of an answer or of the function that gets the report,
// costs one exchange and not the server.
//
// Lines of declared machines are limited apart from those of all others, which anyone can
// cause. The package does not know sockets, and how an answer is found.
package recorder

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"drover/dhcp"
	"drover/internal/lograte"
)

// linesPerSecond is how many log lines of declared machines there are for each
// decision: a room of 500 machines that boot has most of its lines.
const linesPerSecond = 300

// Recorder ends exchanges. Set it up, once, before the first. It must not be copied after that.
type Recorder struct {
	log     *slog.Logger
	report  func(dhcp.Exchange)
	now     func() time.Time
	known   lograte.Limiter // of lines of declared machines
	unknown lograte.Limiter // of all others
}

// SetUp sets the log, the function that gets each exchange, and the clock. Log and report may
// be nil.
func (r *Recorder) SetUp(log *slog.Logger, report func(dhcp.Exchange), now func() time.Time) {
	r.log, r.report, r.now = log, report, now
	r.known.Log, r.known.PerSecond, r.unknown.Log = log, linesPerSecond, log
}

// Done reports and logs an exchange that ends now, without a reply.
func (r *Recorder) Done(x *dhcp.Exchange) {
	r.Report(x)
	r.Log(x)
}

// Report reports an exchange, its time until now included. Call it before the reply is sent: the
// machine can ask for its boot script at once, and then finds the boot that the exchange begins.
func (r *Recorder) Report(x *dhcp.Exchange) {
	defer r.contain()
	x.Took = r.now().Sub(x.Time)
	if r.report != nil {
		r.report(*x)
	}
}

// Log logs an exchange that was reported, after its reply is sent. The line then belongs to the
// boot that the exchange begins, and has the error of sending.
func (r *Recorder) Log(x *dhcp.Exchange) {
	defer r.contain()
	lines := &r.unknown
	if x.Plan != nil && !x.Plan.CatchAll {
		lines = &r.known
	}
	if r.log != nil && lines.Allow(x.Level(), x.Kind()) {
		x.Log(r.log)
	}
}

// contain is to be deferred: it ends a panic of the report or of the log.
func (r *Recorder) contain() {
	if v := recover(); v != nil {
		r.panicked(v)
	}
}

// Rescue is to be deferred: it ends an exchange in which a panic has occurred.
func (r *Recorder) Rescue(x *dhcp.Exchange) {
	if v := recover(); v != nil {
		r.panicked(v)
		x.Reply, x.Decision, x.Err = "", dhcp.Failed, fmt.Errorf("panic: %v", v)
		r.Done(x)
	}
}

func (r *Recorder) panicked(v any) {
	if r.log != nil {
		r.log.Error("dhcp: panic", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
}
