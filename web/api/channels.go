package api

import (
	"fmt"
	"net/http"
	"slices"

	"drover/pools"
	"drover/web/answer"
	"drover/web/auth"
	"drover/web/listing"
	"drover/web/route"
)

// Channels are the channels of images. With dry nothing changes. Its errors for a bad request are
// [pools.ErrNoImage], [pools.ErrBadImage] and [*pools.HintError].
type Channels interface {
	// List returns all channels. The caller may change the list.
	List() []pools.Channel
	// Promote and Rollback move a channel, durably. before is the generation that it had.
	Promote(r pools.PromoteRequest, by string, dry bool) (c pools.Channel, before string, err error)
	Rollback(r pools.RollbackRequest, by string, dry bool) (c pools.Channel, before string, err error)
	// Mark marks a generation bad, or good again, durably.
	Mark(r pools.MarkRequest, by string, dry bool) error
}

// FallBacks are what the boots of nodes say about the generations of their image.
type FallBacks interface {
	// Of returns what is known of a node; the zero value if nothing is.
	Of(node string) pools.ImageTrial
	// Clear has nodes boot what their pools say.
	Clear(nodes ...string)
}

var channelList = listing.List[pools.Channel]{Max: 10_000, Columns: []listing.Column[pools.Channel]{
	{Name: "image", Of: func(c *pools.Channel) string { return c.Image }},
	{Name: "name", Of: func(c *pools.Channel) string { return c.Name }},
	{Name: "current", Of: func(c *pools.Channel) string { return c.Current }},
}}

func (a *API) imageRoutes() []route.Route {
	const path = "/api/v1/images"
	return []route.Route{
		{
			Method: "GET", Path: path, Summary: "The generations of images, each with the pools that boot it, and with its channels", Role: pools.RoleViewer,
			Query: imageList.Parameters(), Status: 200, Answer: []pools.ImageInfo{}, Handle: a.listImages,
		},
		{
			Method: "GET", Path: "/api/v1/channels", Summary: "The channels of images, each with its history", Role: pools.RoleViewer,
			Query: channelList.Parameters(), Status: 200, Answer: []pools.Channel{}, Handle: a.listChannels,
		},
		{
			Method: "POST", Path: path + ":promote", Summary: "Make a generation the current one of a channel; for clients without pools", Role: pools.RoleOperator,
			Body: pools.PromoteRequest{}, Status: 200, Answer: pools.Channel{}, Errors: []int{404, 409}, Handle: a.promote,
		},
		{
			Method: "POST", Path: path + ":rollback", Summary: "Move a channel back to the generation that it had before; for clients without pools", Role: pools.RoleOperator,
			Body: pools.RollbackRequest{}, Status: 200, Answer: pools.Channel{}, Errors: []int{404, 409}, Handle: a.rollback,
		},
		{
			Method: "POST", Path: path + ":mark", Summary: "Mark a generation bad, so that it is not promoted, or good again; for clients without pools", Role: pools.RoleOperator,
			Body: pools.MarkRequest{}, Status: 204, Errors: []int{404, 409}, Handle: a.markImage,
		},
	}
}

// ChannelsOf returns the channels that a client may see: of images that it may boot. Who moved them,
// and why, is for clients without pools.
func (a *API) ChannelsOf(by auth.Client) []pools.Channel {
	all := a.Channels.List()
	if !by.Limited() {
		return all
	}
	may := a.mayBoot(by)
	all = slices.DeleteFunc(all, func(c pools.Channel) bool { return !may(c.Image) })
	for i := range all {
		history := slices.Clone(all[i].History)
		for j := range history {
			history[j].By, history[j].Why = "", ""
		}
		all[i].History = history
	}
	return all
}

func (a *API) listChannels(w http.ResponseWriter, r *http.Request) error {
	return channelList.Answer(w, r, a.ChannelsOf(client(r)))
}

// unlimited returns an error for a client that is limited to pools: a channel is of all of them.
func unlimited(by auth.Client) error {
	if !by.Limited() {
		return nil
	}
	return &answer.Error{
		Code: http.StatusForbidden, Name: answer.CodeForbidden, Remedy: "ask a client without pools",
		Msg: fmt.Sprintf("channels of images are of all pools, and %q is limited to the pools %q", by.Name, by.Pools),
	}
}

func (a *API) promote(w http.ResponseWriter, r *http.Request) error {
	var body pools.PromoteRequest
	if err := readJSON(r, &body); err != nil {
		return err
	}
	return a.moved(w, r, "promote image", func(by string, dry bool) (pools.Channel, string, error) { return a.Channels.Promote(body, by, dry) })
}

func (a *API) rollback(w http.ResponseWriter, r *http.Request) error {
	var body pools.RollbackRequest
	if err := readJSON(r, &body); err != nil {
		return err
	}
	return a.moved(w, r, "roll back image", func(by string, dry bool) (pools.Channel, string, error) { return a.Channels.Rollback(body, by, dry) })
}

// moved moves a channel, and answers with it.
func (a *API) moved(w http.ResponseWriter, r *http.Request, action string, move func(by string, dry bool) (pools.Channel, string, error)) error {
	by, dry := client(r), route.IsDryRun(r)
	if err := unlimited(by); err != nil {
		return err
	}
	c, before, err := move(by.String(), dry)
	if err != nil {
		return err
	}
	if !dry {
		a.record(by, fmt.Sprintf("%s %s:%s", action, c.Image, c.Name), "", pools.AuditChange{Field: "generation", Before: before, After: c.Current})
	}
	answer.JSON(w, http.StatusOK, c)
	return nil
}

func (a *API) markImage(w http.ResponseWriter, r *http.Request) error {
	var body pools.MarkRequest
	if err := readJSON(r, &body); err != nil {
		return err
	}
	by, dry := client(r), route.IsDryRun(r)
	if err := unlimited(by); err != nil {
		return err
	}
	if err := a.Channels.Mark(body, by.String(), dry); err != nil {
		return err
	}
	if !dry {
		action := "mark image bad "
		if body.Good {
			action = "mark image good "
		}
		a.record(by, action+body.Image, "")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
