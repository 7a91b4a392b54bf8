package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"drover/web/answer"
)

// writeTimeout is the longest time that a client may take for a piece of the stream.
const writeTimeout = 30 * time.Second

// stream writes events to a client. After an error it writes nothing.
type stream struct {
	control *http.ResponseController
	buffer  *bufio.Writer
	spoke   time.Time // when something was written last
}

// newStream sends the header of a stream, which keeps that many bytes before it sends them.
func newStream(w http.ResponseWriter, size int) *stream {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // of the server, for requests; a test has none
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx in front of the server
	w.WriteHeader(http.StatusOK)
	s := &stream{control, bufio.NewWriterSize(pieces{w, control}, size), time.Now()}
	_, _ = s.buffer.WriteString("retry: 2000\n\n")
	return s
}

// pieces is a writer with a time limit for each piece.
type pieces struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p pieces) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a test has none
	return p.ResponseWriter.Write(b)
}

// send writes an event, whose data is a line.
func (s *stream) send(id, name string, line []byte) {
	s.begin(id, name)
	s.line(line)
	s.finish()
}

// begin, line and finish write an event, whose data is several lines.
func (s *stream) begin(id, name string) {
	_, _ = s.buffer.WriteString("id: " + id + "\nevent: " + name + "\n") // flush has the error
}

func (s *stream) line(line []byte) {
	_, _ = s.buffer.WriteString("data: ")
	_, _ = s.buffer.Write(line)
	_ = s.buffer.WriteByte('\n')
}

func (s *stream) finish() { _ = s.buffer.WriteByte('\n') }

// alive shows that the stream is in use, if it was silent for long. The ID of the last event is
// then that of the last one for others.
func (s *stream) alive(id string) {
	if s.buffer.Buffered() == 0 && time.Since(s.spoke) >= silence {
		_, _ = s.buffer.WriteString("id: " + id + "\n\n")
	}
}

// end writes the last event: why the server ends the stream.
func (s *stream) end(e *answer.Error) {
	text, _ := json.Marshal(e.Problem()) // texts and a number
	_, _ = s.buffer.WriteString("event: end\ndata: ")
	_, _ = s.buffer.Write(text)
	_, _ = s.buffer.WriteString("\n\n")
	_ = s.flush() // the client is gone
}

// flush sends what was written. Its error means that the client is gone.
func (s *stream) flush() error {
	if s.buffer.Buffered() == 0 {
		return nil
	}
	s.spoke = time.Now()
	if err := s.buffer.Flush(); err != nil {
		return err
	}
	return s.control.Flush()
}

// endKey is the key of the context whose end ends the streams.
type endKey struct{}

// WithEnd returns a context for requests whose streams end with another context.
func WithEnd(ctx, end context.Context) context.Context { return context.WithValue(ctx, endKey{}, end) }

// ending returns the context whose end ends the streams of a request.
func ending(r *http.Request) context.Context {
	if end, ok := r.Context().Value(endKey{}).(context.Context); ok {
		return end
	}
	return context.Background()
}
