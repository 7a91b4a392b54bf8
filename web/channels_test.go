package web_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/server/catalog"
)

// channels are those of a farm of two teams. What is refused there, the catalog refuses.
type channels struct{}

func (channels) List() (all []pools.Channel) {
	for _, image := range []string{"blue-image", "debian-12"} {
		all = append(all, pools.Channel{Image: image, Name: "stable", Current: older, History: []pools.Promotion{{ID: older, Time: epoch, By: "token blue-ops", Why: "blue"}}})
	}
	return all
}

func (c channels) Promote(r pools.PromoteRequest, by string, dry bool) (pools.Channel, string, error) {
	if _, err := (&catalog.Catalog{Channels: none{}}).Promote(pools.PromoteRequest{Image: "-", To: r.To, Why: r.Why}, by, dry); err != nil && !strings.Contains(err.Error(), `"-"`) {
		return pools.Channel{}, "", err
	}
	if r.Image == "" {
		return pools.Channel{}, "", fmt.Errorf("%w: %q", pools.ErrNoImage, r.Image)
	}
	return c.List()[1], "", nil
}

func (c channels) Rollback(r pools.RollbackRequest, by string, dry bool) (pools.Channel, string, error) {
	_, err := (&catalog.Catalog{Channels: none{}}).Rollback(r, by, true)
	if r.Image == "debian-12" {
		return c.List()[1], "", nil
	}
	return pools.Channel{}, "", err
}

func (channels) Mark(r pools.MarkRequest, by string, dry bool) error {
	if r.Image == "debian-12@"+older[:12] {
		return nil
	}
	return pools.Hint("NAME@ID", "%q is not an image", r.Image)
}

// none has decided nothing.
type none struct{ catalog.Channels }

func (none) Of(string) pools.ImageChannels { return pools.ImageChannels{} }

type fallBacks struct{}

func (fallBacks) Of(string) pools.ImageTrial { return pools.ImageTrial{} }

func (fallBacks) Clear(...string) {}

// TestPromoteRoles: an operator moves channels, a viewer and a client that is limited to pools do not,
// and the latter does not read who did, nor why.
func TestPromoteRoles(t *testing.T) {
	s := newHarness(t)
	limited, viewer := s.token(t, pools.RoleOperator, "compute"), s.token(t, pools.RoleViewer)
	for path, body := range map[string]string{
		"promote": `{"image": "debian-12@0123456789ab", "why": "tested"}`, "rollback": `{"image": "debian-12"}`, "mark": `{"image": "debian-12@` + older[:12] + `"}`,
	} {
		for token, want := range map[string]int{limited: 403, viewer: 403, s.token(t, pools.RoleOperator): map[string]int{"mark": 204}[path] + map[string]int{"promote": 200, "rollback": 200}[path]} {
			resp := s.do(request{method: "POST", path: "/api/v1/images:" + path, body: body, anonymous: true, header: bearer(token)})
			if resp.Code != want {
				t.Errorf("%s: got %d %s, want %d", path, resp.Code, resp.Body, want)
			}
		}
	}
	read := func(token string) string {
		return s.do(request{path: "/api/v1/channels", anonymous: true, header: bearer(token)}).Body.String()
	}
	fixture.WantText(t, "for all pools", read(viewer), "token blue-ops", `"current": "`+older)
	fixture.WantNoText(t, "for a pool", read(limited), "blue-ops", `"blue"`)
	all, err := s.Audit.List(10)
	if err != nil || len(all) == 0 || !strings.Contains(fmt.Sprint(all), "promote image debian-12:stable") {
		t.Errorf("the audit has %v, %v", all, err)
	}
}
