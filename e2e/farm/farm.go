// Package farm is a rack with an admin cluster, in which drover is a pod that its Helm chart
// has made: everything that an operator of a farm has before the first machine is powered
// on.
//
//	built, err := farm.Build(ctx, log)                        // programs, node image, server image
//	f, err := built.Open(ctx, farm.Config{...})               // rack, admin cluster, images
//	defer f.Close()
//	err = f.Install(ctx, "values.yaml")                       // helm install
//	out, err := f.Drover(ctx, "node", "list")                 // in the pod
//	out, err = f.Kubectl(ctx, nil, "apply", "-f", "objects.yaml")
//	tenant, err := f.Tenant(ctx, "tenant-a")                  // as its administrator
//	err = tenant.ProveKonnectivity(ctx, "node-1", address)    // and other proofs
//
// The package knows drover's chart and its command line, not its config.
package farm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"drover/deploy/oci"
	"drover/deploy/serverimage"
	"drover/e2e/admin"
	"drover/e2e/buildcache"
	"drover/e2e/lab"
	"drover/e2e/lab/site"
)

// Namespace is the one of the release, and of the objects.
const Namespace = "farm"

// Address is the one of the admin cluster's host in the rack.
const Address = "10.77.0.1"

// Image is the server's container image in the admin cluster.
const Image = "localhost/drover:e2e"

// Built has the paths of all parts of a farm.
type Built struct {
	*site.Built
	Programs      *admin.Programs
	ControlPlanes string // OCI layout, see [buildcache.ControlPlaneImages]
	Webhook       string // OCI layout, see [buildcache.WebhookImage]
	AddOns        string // OCI layout, see [buildcache.AddOnImages]; empty unless it was asked for
}

// Build makes the parts, as far as they are not there from an earlier time.
func Build(ctx context.Context, log io.Writer) (*Built, error) {
	b := new(Built)
	var err error
	if b.Built, err = site.Build(ctx, log); err != nil {
		return nil, err
	}
	if _, err := buildcache.Helm(ctx, log); err != nil {
		return nil, err
	}
	if b.ControlPlanes, err = buildcache.ControlPlaneImages(ctx, log); err != nil {
		return nil, err
	}
	if b.Webhook, err = buildcache.WebhookImage(ctx, log); err != nil {
		return nil, err
	}
	b.Programs, err = admin.Build(ctx, log)
	return b, err
}

// BuildAddOns makes the images of the tenants' add-ons, in addition to [Build].
func (b *Built) BuildAddOns(ctx context.Context, log io.Writer) (err error) {
	b.AddOns, err = buildcache.AddOnImages(ctx, log)
	return err
}

// Config has the settings of a farm.
type Config struct {
	Name    string // of the rack
	Dir     string // everything that the run writes; made anew
	Volumes int    // for the control planes of tenants
}

// Farm is a rack with an admin cluster.
type Farm struct {
	*lab.Rack
	*admin.Cluster
	Server *lab.Drover // the API of drover's pod

	built  *Built
	mirror *http.Server
	kernel map[string]string // what kubelets set, before there was one
}

// Open opens a farm: a rack, and in it an admin cluster that has the images of drover
// and of control planes, and no drover.
func (b *Built) Open(ctx context.Context, c Config) (_ *Farm, err error) {
	if err := os.RemoveAll(c.Dir); err != nil {
		return nil, err
	}
	address := netip.MustParseAddr(Address)
	f := &Farm{built: b}
	if f.kernel, err = admin.Kernel(); err != nil {
		return nil, err
	}
	if f.Rack, err = lab.Open(c.Name, c.Dir, netip.PrefixFrom(address, 24)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	f.Cluster, err = b.Programs.Open(ctx, admin.Config{
		Rack: f.Rack, Dir: filepath.Join(c.Dir, "admin"), Address: address,
		Folders: map[string]string{"images": b.Images, "loaders": b.Loaders},
	})
	if err != nil {
		return nil, err
	}
	f.Server = f.Observe(lab.Drover{Binary: b.Drover, State: f.Data(), API: "127.0.0.1:8443"})
	if err := f.importImages(ctx); err != nil {
		return nil, err
	}
	if err := f.serveImages(); err != nil {
		return nil, err
	}
	if err := f.Volumes(ctx, c.Volumes, serverimage.User); err != nil {
		return nil, err
	}
	return f, os.Chown(f.Data(), serverimage.User, serverimage.User)
}

// importImages imports the images of drover and of control planes.
func (f *Farm) importImages(ctx context.Context) error {
	archive := filepath.Join(f.Dir, "server.tar")
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	err = serverimage.Write(file, serverimage.Config{Name: Image, Programs: map[string]string{runtime.GOARCH: f.built.Drover}})
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	for _, images := range []string{archive, f.built.ControlPlanes} {
		if err := f.Import(ctx, images); err != nil {
			return err
		}
	}
	return nil
}

// Mirror is the address of the registry that stands for all others, for nodes whose tag
// says so to their containerd. It has the images of tenants.
const Mirror = Address + ":5000"

// serveImages serves the images of tenants.
func (f *Farm) serveImages() error {
	l, err := f.Listen("tcp", Mirror)
	if err != nil {
		return err
	}
	layouts := []string{f.built.ControlPlanes, f.built.Webhook}
	if f.built.AddOns != "" {
		layouts = append(layouts, f.built.AddOns)
	}
	f.mirror = &http.Server{Handler: oci.Registry(layouts...), ReadHeaderTimeout: time.Minute}
	go func() { _ = f.mirror.Serve(l) }() // until Close
	return nil
}

// Install installs the chart with a file of values, and waits until drover's pod is ready.
func (f *Farm) Install(ctx context.Context, values string) error {
	_, err := f.Helm(ctx, "install", "drover", f.Chart(), "--namespace", Namespace, "--create-namespace", "--values", values)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute) // other work may share the machine
	defer cancel()
	return Await(ctx, "drover's pod", func() error {
		_, err := f.Kubectl(ctx, nil, "rollout", "status", "deployment/drover", "--namespace", Namespace, "--timeout=20s")
		return err
	})
}

// Chart returns the folder of the chart.
func (f *Farm) Chart() string { return filepath.Join(f.built.Root, "deploy", "charts", "drover") }

// Drover runs the command drover in the pod, and returns its standard output.
func (f *Farm) Drover(ctx context.Context, args ...string) (string, error) {
	return f.Kubectl(ctx, nil, append([]string{"exec", "deployment/drover", "--namespace", Namespace, "--", "drover"}, args...)...)
}

// Close ends the admin cluster with all pods, the machines and the rack. The files stay. The
// error is also of processes, mounts, cgroups and kernel parameters that stay.
func (f *Farm) Close() error {
	var err error
	if f.mirror != nil {
		err = f.mirror.Close()
	}
	if f.Cluster != nil {
		err = errors.Join(err, f.Cluster.Close(), f.Left())
	}
	kernel, kernelErr := admin.Kernel()
	if kernelErr == nil && !maps.Equal(kernel, f.kernel) {
		kernelErr = fmt.Errorf("kernel parameters of this host were %v, and are %v", f.kernel, kernel)
	}
	return errors.Join(err, kernelErr, f.Rack.Close())
}
