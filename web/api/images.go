package api

import (
	"net/http"
	"slices"
	"strconv"

	"drover/pools"
	"drover/web/listing"
)

var imageList = listing.List[pools.ImageInfo]{Max: 10_000, Columns: []listing.Column[pools.ImageInfo]{
	{Name: "name", Of: func(i *pools.ImageInfo) string { return i.Name }},
	{Name: "id", Of: func(i *pools.ImageInfo) string { return i.ID }},
	{Name: "current", Of: func(i *pools.ImageInfo) string { return strconv.FormatBool(i.Current) }, Words: []string{"true", "false"}},
	{Name: "pool", All: func(i *pools.ImageInfo) []string { return i.Pools }},
	{Name: "created", Of: func(i *pools.ImageInfo) string { return listing.Time(i.Created) }, SortOnly: true},
}}

// listImages answers with the generations of all images, each with the pools that boot it.
func (a *API) listImages(w http.ResponseWriter, r *http.Request) error {
	all := a.Images()
	for _, p := range a.Pools() {
		i := slices.IndexFunc(all, func(i pools.ImageInfo) bool {
			return i.Current && p.Image == i.Name || p.Image == i.Name+"@sha256:"+i.ID
		})
		if i >= 0 {
			all[i].Pools, all[i].Nodes = append(all[i].Pools, p.Name), all[i].Nodes+p.Nodes
		}
	}
	return imageList.Answer(w, r, all)
}
