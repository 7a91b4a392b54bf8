package httpboot

import (
	"cmp"
	"io"
	"net/http"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// chunk is the part of a file that is passed to the kernel at a time, in bytes. The write
// deadline is renewed before each chunk.
const chunk = 1 << 20

// recorder records the answer to a request for the log, and extends the connection's
// write deadline as long as the client reads.
//
// It has ReadFrom, with which net/http uses sendfile(2). That saves a third of the CPU
// time of a large transfer.
type recorder struct {
	http.ResponseWriter
	Request // filled in step by step; Status is 0 until the header is written

	start     time.Time
	plan      *resolve.Plan        // of the client's machine, if known
	stall     time.Duration        // the time limit of one chunk
	mostStall func() time.Duration // a shorter limit while other clients wait for a slot; may be nil
	problem   bool                 // the answer is a script that shows a problem
	queued    bool                 // the answer is a position in the queue for images, or the client disconnected there
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// identify records the machine of the client.
func (r *recorder) identify(p *resolve.Plan) {
	r.plan, r.MAC, r.Pool, r.Node = p, p.MAC, p.Pool, p.Node
}

func (r *recorder) WriteHeader(code int) {
	if r.Status == 0 && code >= 200 {
		r.Status = code
	}
	r.renew()
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.Status = cmp.Or(r.Status, http.StatusOK)
	r.renew()
	n, err := r.ResponseWriter.Write(b)
	r.wrote(int64(n), err)
	return n, err
}

// ReadFrom writes src in chunks. Package net uses sendfile(2) only for an *os.File in at
// most one io.LimitedReader. http.ServeContent has put one around the file already
// (io.CopyN), so ReadFrom replaces that.
func (r *recorder) ReadFrom(src io.Reader) (total int64, err error) {
	rf, ok := r.ResponseWriter.(io.ReaderFrom)
	all, limited := src.(*io.LimitedReader)
	if !ok || !limited {
		return io.Copy(struct{ io.Writer }{r}, src)
	}
	r.Status = cmp.Or(r.Status, http.StatusOK)
	for all.N > 0 {
		r.renew()
		want := min(all.N, chunk)
		n, err := rf.ReadFrom(&io.LimitedReader{R: all.R, N: want})
		r.wrote(n, err)
		total += n
		all.N -= n
		if err != nil || n < want {
			return total, err
		}
	}
	return total, nil
}

func (r *recorder) wrote(n int64, err error) {
	r.Bytes += n
	r.Err = cmp.Or(r.Err, err)
}

// renew extends the write deadline for the next chunk. It ignores writers without
// deadlines, as in tests.
func (r *recorder) renew() {
	d := r.stall
	if r.mostStall != nil {
		d = min(d, r.mostStall())
	}
	_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(time.Now().Add(d))
}

// maxBody limits the body of any request, in bytes. [readJSON] has the limit of each kind.
const maxBody = max(pools.MaxEventBody, pools.MaxInventory, pools.MaxNodeRequest)

// limitBody limits the size of a request's body and the time to read it. net/http removes
// the deadline at the end of the body. It applies after the handler, too, when net/http
// reads the rest of the body.
func (r *recorder) limitBody(req *http.Request, d time.Duration) {
	_ = http.NewResponseController(r.ResponseWriter).SetReadDeadline(time.Now().Add(d))
	req.Body = http.MaxBytesReader(r.ResponseWriter, req.Body, maxBody)
}
