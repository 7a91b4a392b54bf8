package traces

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"drover/internal/printable"
	"drover/pools/boots"
)

// The parts of an ExportTraceServiceRequest in JSON (OpenTelemetry Protocol 1, "JSON Protobuf
// Encoding"): IDs are hex digits, times are nanoseconds as text.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Parent     string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes,omitempty"`
		Events     []event     `json:"events,omitempty"`
		Status     status      `json:"status"`
	}
	event struct {
		Time       string      `json:"timeUnixNano"`
		Name       string      `json:"name"`
		Attributes []attribute `json:"attributes,omitempty"`
	}
	status struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		Text string `json:"stringValue"`
	}
)

// Numbers of the protocol.
const (
	kindInternal = 1
	statusOK     = 1
	statusError  = 2
)

// maxText bounds a text that a machine has sent, in bytes.
const maxText = 300

// Encode returns boots as the body of a request to a collector: each is a trace with a span for
// the boot, and one for each step from the step before it. Errors are events. The same boot has
// the same IDs each time.
func Encode(version string, all ...boots.Record) ([]byte, error) {
	var spans []span
	for i := range all {
		spans = append(spans, spansOf(&all[i])...)
	}
	return json.Marshal(request{[]resourceSpans{{
		resource{attributes("service.name", "drover", "service.version", version)},
		[]scopeSpans{{scope{"drover/pools/boots"}, spans}},
	}}})
}

// spansOf returns the spans of a boot, that of the boot first.
func spansOf(b *boots.Record) []span {
	trace, root := id("trace", b.ID, 16), id("boot", b.ID, 8)
	whole := span{
		TraceID: trace, SpanID: root, Name: "boot", Kind: kindInternal, Start: nanos(b.Started), Status: status{Code: statusOK},
		Attributes: attributes("drover.boot", b.ID, "drover.node", b.Node, "drover.mac", b.MAC.String(), "drover.pool", b.Pool, "drover.cluster", b.Cluster, "drover.image", b.Image),
	}
	if !b.Ended() {
		whole.Status = status{statusError, printable.Line(b.Error, maxText)}
	}
	spans := []span{whole}
	before := b.Started
	for i, s := range b.Steps {
		if s.Time.Before(before) { // the clock was set back
			s.Time = before
		}
		if s.Error != "" {
			spans[0].Events = append(spans[0].Events, event{nanos(s.Time), "error", attributes("drover.step", string(s.Step), "error.message", printable.Line(s.Error, maxText))})
		} else {
			spans = append(spans, span{
				TraceID: trace, SpanID: id("step "+strconv.Itoa(i), b.ID, 8), Parent: root, Name: string(s.Step), Kind: kindInternal,
				Start: nanos(before), End: nanos(s.Time),
				Attributes: attributes("drover.reporter", string(s.Step.Reporter()), "drover.detail", printable.Line(s.Detail, maxText)),
			})
			before = s.Time
		}
		spans[0].End = nanos(s.Time)
	}
	if len(b.Steps) == 0 {
		spans[0].End = spans[0].Start
	}
	return spans
}

// attributes returns pairs of names and values, without those that are empty.
func attributes(pairs ...string) (all []attribute) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, attribute{pairs[i], value{pairs[i+1]}})
		}
	}
	return all
}

// id returns an ID of some bytes that follows from the ID of a boot.
func id(kind, boot string, size int) string {
	sum := sha256.Sum256([]byte("drover " + kind + " " + boot))
	return hex.EncodeToString(sum[:size])
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
