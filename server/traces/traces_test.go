package traces_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/boots"
	"drover/server/traces"
)

var began = time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)

// record is a boot that has come to a step, one second after the other, with an error in the
// image.
func record(id string, last boots.Step) boots.Record {
	b := boots.Record{
		ID: id, MAC: pools.MAC{2, 0, 0, 0, 0, 1}, Node: "m1c29", Pool: "compute", Cluster: "tenant-a", Image: "debian-12", Started: began,
	}
	at := began
	for _, s := range boots.Steps() {
		if s.Optional || s.Step.Rank() > last.Rank() {
			continue
		}
		if s.Step == boots.StepImage {
			b.Steps = append(b.Steps, boots.StepTime{Step: s.Step, Time: at, Error: "connection refused\x1b[2J"})
		}
		b.Steps = append(b.Steps, boots.StepTime{Step: s.Step, Time: at, Detail: "detail of " + string(s.Step)})
		at = at.Add(time.Second)
	}
	return b
}

func TestEncode(t *testing.T) {
	b := record("20261123T180000.000000000-020000000001", boots.StepReady)
	body, err := traces.Encode("1.2.3", b)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "testdata/boot.json", strings.ReplaceAll(string(body), `{"traceId"`, "\n{\"traceId\"")+"\n")
}

// TestCollector: the decoder of OpenTelemetry's collector reads what is sent.
func TestCollector(t *testing.T) {
	failed := record("b2", boots.StepImage)
	failed.Error = "connection refused"
	body, err := traces.Encode("1.2.3", record("b1", boots.StepReady), failed)
	if err != nil {
		t.Fatal(err)
	}
	read, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(body)
	if err != nil {
		t.Fatal(err)
	}
	resource := read.ResourceSpans().At(0)
	if name, _ := resource.Resource().Attributes().Get("service.name"); name.Str() != "drover" {
		t.Errorf("the service is %q", name.Str())
	}
	spans := resource.ScopeSpans().At(0).Spans()
	if spans.Len() != 17+10 {
		t.Fatalf("got %d spans, want those of two boots with 16 and 9 steps", spans.Len())
	}
	boot, first, last, second := spans.At(0), spans.At(1), spans.At(16), spans.At(17)
	if boot.TraceID().IsEmpty() || boot.TraceID() != last.TraceID() || boot.TraceID() == second.TraceID() || !boot.ParentSpanID().IsEmpty() || last.ParentSpanID() != boot.SpanID() {
		t.Error("the spans of a boot are not one trace")
	}
	if !boot.StartTimestamp().AsTime().Equal(began) || boot.EndTimestamp() != last.EndTimestamp() || first.Name() != "discover" || last.Name() != "ready" ||
		last.EndTimestamp().AsTime().Sub(last.StartTimestamp().AsTime()) != time.Second {
		t.Errorf("got %s from %v to %v", last.Name(), last.StartTimestamp().AsTime(), last.EndTimestamp().AsTime())
	}
	if boot.Status().Code() != ptrace.StatusCodeOk || second.Status().Code() != ptrace.StatusCodeError || second.Status().Message() != "connection refused" {
		t.Errorf("got the results %v, %v %q", boot.Status().Code(), second.Status().Code(), second.Status().Message())
	}
	if boot.Events().Len() != 1 {
		t.Fatalf("got %d events, want the error", boot.Events().Len())
	}
	if text, _ := boot.Events().At(0).Attributes().Get("error.message"); text.Str() != "connection refused?[2J" {
		t.Errorf("got the error %q", text.Str())
	}
}

// collector is a collector that answers with codes, one after the other.
type collector struct {
	codes []int
	got   []string // bodies
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	code := http.StatusOK
	if len(c.codes) > 0 {
		code, c.codes = c.codes[0], c.codes[1:]
	}
	w.WriteHeader(code)
	c.got = append(c.got, string(body))
	return w.Result(), nil
}

func TestSender(t *testing.T) {
	script, ready := boots.StepTime{Step: boots.StepScript}, boots.StepTime{Step: boots.StepReady}
	for _, tt := range []struct {
		name  string
		codes []int
		steps func(*traces.Sender)
		wait  time.Duration
		want  []string // parts of the requests; each has one
		fails int      // boots
	}{
		{"a boot ends", nil, func(s *traces.Sender) {
			s.Step(record("b1", boots.StepScript), script)
			s.Step(record("b1", boots.StepReady), ready)
			s.Step(record("b1", boots.StepReady), boots.StepTime{Step: boots.StepJoined})
		}, time.Hour, []string{`"b1"`}, 0},
		{"another boot begins", nil, func(s *traces.Sender) {
			s.Step(record("b1", boots.StepImage), script)
			s.Step(record("b2", boots.StepDiscover), boots.StepTime{Step: boots.StepDiscover})
			s.Step(record("b2", boots.StepScript), script)
		}, time.Minute, []string{`"b1"`}, 0},
		{"it never ends", nil, func(s *traces.Sender) { s.Step(record("b1", boots.StepImage), script) }, 2 * time.Hour, []string{`"b1"`}, 0},
		{"not yet", nil, func(s *traces.Sender) { s.Step(record("b1", boots.StepImage), script) }, time.Minute, nil, 0},
		{"nothing but DISCOVERs", nil, func(s *traces.Sender) {
			s.Step(record("b1", boots.StepOffer), boots.StepTime{Step: boots.StepOffer})
		}, 2 * time.Hour, nil, 0},
		{"a busy collector", []int{503, 429}, func(s *traces.Sender) { s.Step(record("b1", boots.StepImage), script) }, 2 * time.Hour, []string{`"b1"`, `"b1"`, `"b1"`}, 0},
		{"a collector that is gone", []int{503, 503, 503, 503}, func(s *traces.Sender) { s.Step(record("b1", boots.StepImage), script) }, 2 * time.Hour, []string{`"b1"`, `"b1"`, `"b1"`, `"b1"`}, 1},
		{"a wrong URL", []int{404}, func(s *traces.Sender) { s.Step(record("b1", boots.StepImage), script) }, 2 * time.Hour, []string{`"b1"`}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, fails := &collector{codes: tt.codes}, 0
				s := &traces.Sender{
					URL: "http://collector.example/v1/traces", Log: slog.New(slog.DiscardHandler), HTTP: &http.Client{Transport: c},
					OnSent: func(n int, err error) {
						if err != nil {
							fails += n
						}
					},
					Now: func() time.Time { return began.Add(time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))) }, // the clock of the bubble
				}
				tt.steps(s)
				ctx, cancel := context.WithTimeout(t.Context(), tt.wait)
				defer cancel()
				if err := s.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if len(c.got) != len(tt.want) || fails != tt.fails {
					t.Fatalf("got the requests %q, and %d boots that were not sent; want %d, %d", c.got, fails, len(tt.want), tt.fails)
				}
				for i, want := range tt.want {
					fixture.WantText(t, "a request", c.got[i], want)
				}
			})
		})
	}
}
