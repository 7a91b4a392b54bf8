package server

import (
	"drover/imagebuild"
	"drover/pools"
)

// imageInfos returns a function that lists the images in a directory, for the REST API. It
// leaves out the damaged ones: /readyz has those that a pool names.
func imageInfos(dir *imagebuild.Dir) func() []pools.ImageInfo {
	return func() (all []pools.ImageInfo) {
		list, _ := dir.List()
		for _, i := range list {
			info := pools.ImageInfo{
				Name: i.Name, ID: i.ID, Current: i.Current, Created: i.Created, Source: i.Source, Platform: i.Platform, KernelVersion: i.KernelVersion, Size: i.Size(),
			}
			all = append(all, info)
		}
		return all
	}
}
