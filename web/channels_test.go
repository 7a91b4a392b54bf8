package web_test

import (
	"fmt"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
)

// channels are those of a farm of two teams. They take a request for debian-12 alone.
type channels struct{}

func (channels) List() (all []pools.Channel) {
	for _, image := range []string{"blue-image", "debian-12"} {
		all = append(all, pools.Channel{Image: image, Name: "stable", Current: older, History: []pools.Promotion{{ID: older, Time: epoch, By: "token blue-ops", Why: "blue"}}})
	}
	return all
}

func (c channels) move(image string) (pools.Channel, string, error) {
	switch name, _, _ := pools.SplitImage(image); name {
	case "debian-12":
		return c.List()[1], "", nil
	case "":
		return pools.Channel{}, "", pools.Hint("NAME@ID", "%q is not an image", image)
	}
	return pools.Channel{}, "", fmt.Errorf("%w: %q", pools.ErrNoImage, image)
}

func (c channels) Promote(r pools.PromoteRequest, _ string, _ bool) (pools.Channel, string, error) {
	if r.To == "refused" {
		return pools.Channel{}, "", fmt.Errorf("%w: it is marked bad", pools.ErrBadImage)
	}
	return c.move(r.Image)
}

func (c channels) Rollback(r pools.RollbackRequest, _ string, _ bool) (pools.Channel, string, error) {
	return c.move(r.Image)
}

func (c channels) Mark(r pools.MarkRequest, _ string, _ bool) error {
	_, _, err := c.move(r.Image)
	return err
}

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
	for body, want := range map[string]string{
		`{"image": "fedora"}`:                       `"code": "not-found"`,
		`{"image": ""}`:                             "is not an image",
		`{"image": "debian-12", "to": "refused"}`:   `"code": "bad-image"`,
		`{"image": "debian-12", "channel": "beta"}`: "channel",
	} {
		fixture.WantText(t, body, s.do(request{method: "POST", path: "/api/v1/images:promote", body: body}).Body.String(), want)
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
