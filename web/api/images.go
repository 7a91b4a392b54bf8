package api

import (
	"net/http"
	"slices"
	"strconv"

	"drover/pools"
	"drover/web/auth"
	"drover/web/listing"
)

var imageList = listing.List[pools.ImageInfo]{Max: 10_000, Columns: []listing.Column[pools.ImageInfo]{
	{Name: "name", Of: func(i *pools.ImageInfo) string { return i.Name }},
	{Name: "id", Of: func(i *pools.ImageInfo) string { return i.ID }},
	{Name: "current", Of: func(i *pools.ImageInfo) string { return strconv.FormatBool(i.Current) }, Words: []string{"true", "false"}},
	{Name: "channel", All: func(i *pools.ImageInfo) []string { return i.Channels }},
	{Name: "pool", All: func(i *pools.ImageInfo) []string { return i.Pools }},
	{Name: "created", Of: func(i *pools.ImageInfo) string { return listing.Time(i.Created) }, SortOnly: true},
}}

// ImagesOf returns the generations of images that a client may see and boot: those that one of its
// pools boots, and those that no pool does.
func (a *API) ImagesOf(by auth.Client) []pools.ImageInfo {
	all := a.Images()
	if !by.Limited() {
		return all
	}
	may := a.mayBoot(by)
	all = slices.DeleteFunc(all, func(i pools.ImageInfo) bool { return !may(i.Name) })
	for i := range all {
		if all[i].Bad != nil {
			all[i].Bad = &pools.ImageMark{Time: all[i].Bad.Time}
		}
	}
	return all
}

// mayBoot returns a function that reports whether a client may boot its nodes with an image.
func (a *API) mayBoot(by auth.Client) func(image string) bool {
	may := map[string]bool{}
	for _, p := range a.Farm.Farm().Config.Pools {
		name := pools.ImageName(p.Image)
		may[name] = may[name] || by.May(p.Name) == nil
	}
	return func(image string) bool {
		ok, used := may[image]
		return ok || !used
	}
}

// listImages answers with the generations of all images, each with the pools that boot it.
func (a *API) listImages(w http.ResponseWriter, r *http.Request) error {
	all := a.ImagesOf(client(r))
	for _, p := range a.Pools(client(r)) {
		i := slices.IndexFunc(all, func(i pools.ImageInfo) bool { return i.Means(p.Image) })
		if i >= 0 {
			all[i].Pools, all[i].Nodes = append(all[i].Pools, p.Name), all[i].Nodes+p.Nodes
		}
	}
	a.countMachines(client(r), all)
	return imageList.Answer(w, r, all)
}

// countMachines sets how many of the machines that a client may see have booted each generation last.
func (a *API) countMachines(by auth.Client, all []pools.ImageInfo) {
	at := map[string]*pools.ImageInfo{}
	for i := range all {
		at[all[i].Name+"@"+all[i].ID] = &all[i]
	}
	seen := map[string]bool{}
	for _, b := range a.Boots.List() { // the newest first
		if i := at[pools.ImageName(b.Image)+"@"+b.Generation]; i != nil && !seen[b.Node] && by.May(b.Pool) == nil {
			i.Machines++
		}
		seen[b.Node] = true
	}
}
