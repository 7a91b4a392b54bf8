package fetch

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"drover/e2e/fixture"
)

// A transfer goes on at another server where it broke off, and a wrong chunk of one server does
// not end it.
func TestFetchFromOtherServer(t *testing.T) {
	gone := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, tt := range map[string]struct {
		first []http.HandlerFunc // answers of the first server; it is away after them
		other []string           // ranges that the other one is asked for
	}{
		"away":           {nil, []string{""}},
		"has no image":   {[]http.HandlerFunc{http.NotFound}, []string{""}},
		"broke off":      {[]http.HandlerFunc{nil, gone}, []string{"bytes=1048576-"}},
		"of other bytes": {[]http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetchTest(t)
			other := &imageServer{content: f.server.content, etag: f.server.etag}
			s := httptest.NewServer(other)
			t.Cleanup(s.Close)
			f.Also = []string{s.URL}
			f.server.odd = map[int]http.HandlerFunc{}
			for i := range 20 {
				f.server.odd[i+1] = gone
				if i < len(tt.first) {
					if f.server.odd[i+1] = tt.first[i]; tt.first[i] == nil {
						f.server.odd[i+1] = f.server.part(cutAt, false)
					}
				}
			}
			n, err := f.Fetch(t.Context(), f.path)
			if err != nil || n != imageSize {
				t.Fatalf("got %d bytes, %v", n, err)
			}
			if got := fixture.ReadFile(t, f.path); got != string(f.server.content) {
				t.Error("the file is not what was served")
			}
			if !slices.Equal(other.ranges, tt.other) {
				t.Errorf("asked the other server for %q, want %q", other.ranges, tt.other)
			}
		})
	}
}
