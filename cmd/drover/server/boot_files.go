package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path"
	"path/filepath"

	"drover/httpboot"
	"drover/httpboot/script"
	"drover/pools"
	"drover/pools/boots"
	"drover/tftp"
)

// serveTFTP makes the TFTP server, whose files are those of the machine that
// asks.
func (s *Server) serveTFTP(cfg pools.Server, loaders string) {
	files := s.scripts.TFTP()
	s.tftp = &tftp.Server{
		Addr: cfg.TFTP, Dir: loaders, SinglePort: cfg.TFTPSinglePort, Log: s.part("tftp"), OnTransfer: s.transfer, Attrs: attrs,
		Open: func(client netip.Addr, name string) (tftp.File, error) {
			f, err := files.Open(client, name)
			if err != nil {
				return nil, err
			}
			return f, nil
		},
	}
}

// newScripts makes the renderer of boot scripts.
func (s *Server) newScripts(loaders string, farm *pools.Farm, images script.Images, nodeTLS *httpboot.TLS) (*script.Renderer, error) {
	templates, err := LoadTemplates(farm)
	if err != nil {
		return nil, err
	}
	args, err := nodeTLS.KernelArgs()
	if err != nil {
		return nil, err
	}
	return script.New(script.Options{
		Machines: s.Machines, Boots: s.Store.Boots, Images: images, URL: farm.URL(), TLSArgs: args,
		Loaders: loaders, Templates: templates, TakeNextBoot: s.Store.NextBoots.Take, Log: s.part("http"),
	})
}

// attrs returns the MAC of a TFTP client for the log.
func attrs(t tftp.Transfer) []slog.Attr {
	if mac := clientOf(t); !mac.IsZero() {
		return []slog.Attr{slog.String("mac", mac.String())}
	}
	return nil
}

// clientOf returns the MAC of a TFTP client as it was found when the file was
// opened; zero when it is unknown.
func clientOf(t tftp.Transfer) pools.MAC {
	if f, ok := t.Opened.(*script.File); ok {
		return f.MAC
	}
	if e, ok := errors.AsType[*script.Error](t.Err); ok {
		return e.MAC
	}
	return pools.MAC{}
}

// transfer is told of every TFTP transfer.
func (s *Server) transfer(t tftp.Transfer) {
	s.metrics.transfer(t)
	mac, step := clientOf(t), script.StepOf(t.File)
	if t.Err != nil || mac.IsZero() || step == "" {
		return
	}
	detail := t.File
	if step != boots.StepLoader {
		detail = fmt.Sprintf("%s, %.1f MB in %.2f s by TFTP", path.Base(t.File), float64(t.Bytes)/1e6, t.Took.Seconds())
	}
	s.step(mac, boots.Event{Step: step, Detail: detail})
}

// LoadTemplates reads the boot scripts of server.templates; nil when the config has
// none.
func LoadTemplates(farm *pools.Farm) (*script.Templates, error) {
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

// there tells what is missing of a loader: itself, or the GRUB that shim loads
// from beside it, or from the directory of loaders.
func (r *readiness) there(loader string) error {
	if path.Base(loader) == pools.UBootArm64.Loader() {
		return nil // made when it is asked for
	}
	if _, err := os.Stat(filepath.Join(r.loaders, loader)); err != nil {
		return err
	}
	second := map[string]string{"shimx64.efi": "grubx64.efi", "shimaa64.efi": "grubaa64.efi"}[path.Base(loader)]
	if second == "" {
		return nil
	}
	_, err := os.Stat(filepath.Join(r.loaders, path.Dir(loader), second))
	if err != nil {
		_, err = os.Stat(filepath.Join(r.loaders, second))
	}
	if err != nil {
		return fmt.Errorf("%s has nothing to load: %w: put it there with drover loaders install", loader, err)
	}
	return nil
}
