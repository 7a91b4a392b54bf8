package server

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"drover/httpboot"
	"drover/httpboot/script"
	"drover/imagebuild"
	"drover/pools/resolve"
	"drover/server/catalog"
)

// imageDir finds images. It implements [script.Images].
type imageDir struct{ images *catalog.Catalog }

func (d imageDir) Image(ref string) (script.Image, error) {
	i, err := d.images.Lookup(ref)
	if err != nil {
		return script.Image{}, err
	}
	file := func(name string) script.FileInfo {
		return script.FileInfo{Name: name, Size: i.Files[name].Size, SHA256: i.Files[name].SHA256}
	}
	return script.Image{
		Name: i.Name, Generation: i.ID, Dir: i.Path,
		Kernel: file(imagebuild.KernelFile), Initrd: file(imagebuild.InitrdFile), Squashfs: file(imagebuild.SquashfsFile),
	}, nil
}

// newScripts returns the renderer of boot scripts, for HTTP and TFTP.
func (s *Server) newScripts(loaders string, farm *resolve.Farm, images *catalog.Catalog, nodeTLS *httpboot.TLS) (*script.Renderer, error) {
	templates, err := LoadTemplates(farm)
	if err != nil {
		return nil, err
	}
	pin, err := nodeTLS.Pin()
	if err != nil {
		return nil, fmt.Errorf("key of the HTTPS listener: %w", err)
	}
	return script.New(script.Options{
		Machines: s.Machines, Boots: s.Store.Boots, Images: imageDir{images}, FallBack: s.fallBack(images), Pin: pin,
		Advertised: func(client netip.Addr) *resolve.Advertised { return s.Live.Farm().AdvertisedAt(client) },
		Also:       s.others,
		Loaders:    loaders, Templates: templates, TakeNextBoot: s.Store.NextBoots.Take, Log: s.part("http"),
	})
}

// LoadTemplates reads the templates of boot scripts in server.templates. It returns
// nil if the config names none.
func LoadTemplates(farm *resolve.Farm) (*script.Templates, error) {
	dir := farm.Config.Server.Templates
	if dir == "" {
		return nil, nil
	}
	t, err := script.LoadTemplates(farm.Path(dir))
	if err != nil {
		return nil, errors.Join(errors.New("server.templates: the boot scripts have mistakes"), err)
	}
	return t, nil
}

// others returns the other servers of the farm. An address of this server's own may be in the
// list, so that all servers have one config.
func (s *Server) others() []netip.AddrPort {
	farm := s.Live.Farm()
	return slices.DeleteFunc(farm.Config.Server.Others(), func(a netip.AddrPort) bool { return farm.IsLocal(a.Addr()) })
}
