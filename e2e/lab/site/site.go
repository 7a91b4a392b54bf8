package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"drover/e2e/controlplane"
	"drover/e2e/lab"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/resolve"
)

// Config has the settings of a site.
type Config struct {
	Name string // of the rack
	Dir  string // everything that the run writes; made anew
	Farm string // drover's config file

	// Files are put beside the config: paths of this host by the names that it has for them.
	Files map[string]string

	// Admin is called for each control plane when it is up and drover is not
	// yet; nil: not.
	Admin func(r *lab.Rack, p *controlplane.Cluster) error
}

// Site is a rack with control planes and drover.
type Site struct {
	*lab.Rack
	Drover *lab.Drover
	Planes map[string]*controlplane.Cluster // by cluster

	farm  string // drover's config file: a copy, beside the kubeconfigs that it names
	built *Built
}

// Networks of the rack: those of the families that the config has subnets of. The server has
// their first address, unless the config says where it is, and the control planes the next ones.
const (
	server4   = "10.77.0.1/24"
	server6   = "fd00:77::1/64"
	apiAddr   = "127.0.0.1:8443"
	planePort = 6443
	maxPlanes = 8
)

// Open opens a site: a rack, a control plane for each cluster that the config
// names, and drover.
func (b *Built) Open(ctx context.Context, c Config) (_ *Site, err error) {
	farm, err := config.Load(c.Farm)
	if err != nil {
		return nil, err
	}
	clusters := farm.Config.Clusters
	if len(clusters) > maxPlanes {
		return nil, fmt.Errorf("%s: %d clusters, the rack has room for %d", c.Farm, len(clusters), maxPlanes)
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		return nil, err
	}
	addrs, planes := addresses(&farm.Config)
	s := &Site{built: b, Planes: make(map[string]*controlplane.Cluster)}
	if s.Rack, err = lab.Open(c.Name, c.Dir, addrs...); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	b.say("rack %s: a network namespace with a bridge, no way out", c.Name)
	if err := s.install(c); err != nil {
		return nil, err
	}
	if err := s.startPlanes(ctx, clusters, planes); err != nil {
		return nil, err
	}
	for _, p := range s.Planes {
		if c.Admin == nil {
			break
		}
		if err := c.Admin(s.Rack, p); err != nil {
			return nil, err
		}
	}
	s.Drover = &lab.Drover{
		Binary: b.Drover, Config: s.farm, State: filepath.Join(c.Dir, "state"),
		Images: b.Images, Loaders: b.Loaders, API: apiAddr,
	}
	if err := os.MkdirAll(s.Drover.State, 0o700); err != nil {
		return nil, err
	}
	if err := s.StartDrover(ctx, s.Drover); err != nil {
		return nil, err
	}
	b.say("drover serves on %s", lab.Bridge)
	return s, nil
}

// install copies the config, with the files that it names, to the run's directory: paths in
// it are relative to it, and nothing is to be written beside the original.
func (s *Site) install(c Config) error {
	s.farm = filepath.Join(s.Dir, "drover.yaml")
	copies := map[string]string{s.farm: c.Farm}
	for name, from := range c.Files {
		copies[filepath.Join(s.Dir, name)] = from
	}
	for to, from := range copies {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// addresses returns the addresses of a rack for a config, and those of its control planes.
// A config without subnets, for a server that gives no addresses, has IPv4.
func addresses(c *pools.Config) (all []netip.Prefix, planes []netip.Addr) {
	next := map[pools.IPFamilies]netip.Prefix{pools.IPv4Only: netip.MustParsePrefix(server4), pools.IPv6Only: netip.MustParsePrefix(server6)}
	for _, s := range c.Subnets {
		if s.CIDR.Contains(c.Server.Address) {
			next[pools.FamilyOf(c.Server.Address)] = netip.PrefixFrom(c.Server.Address, s.CIDR.Bits())
		}
	}
	for family, server := range next {
		has := func(s pools.Subnet) bool { return pools.FamilyOf(s.CIDR.Addr()) == family }
		if slices.ContainsFunc(c.Subnets, has) || len(c.Subnets) == 0 && family == pools.IPv4Only {
			all = append(all, server)
		}
	}
	for _, cl := range c.Clusters {
		family := primary(cl)
		p := netip.PrefixFrom(next[family].Addr().Next(), next[family].Bits())
		next[family] = p
		all, planes = append(all, p), append(planes, p.Addr())
	}
	return all, planes
}

// primary returns the family of the API server of a cluster.
func primary(c pools.Cluster) pools.IPFamilies {
	if all := c.IPFamilies.All(); len(all) > 0 {
		return all[0]
	}
	return pools.IPv4Only
}

// networks returns the networks of the pods and of the Services of a cluster.
func networks(families pools.IPFamilies, i int) (pods, services string) {
	of := map[pools.IPFamilies][2]string{
		pools.IPv4Only: {fmt.Sprintf("10.%d.0.0/16", 244+i), fmt.Sprintf("10.%d.0.0/16", 96+i)},
		pools.IPv6Only: {fmt.Sprintf("fd00:10:%d::/56", 244+i), fmt.Sprintf("fd00:10:%d::/112", 96+i)},
	}
	var all [2][]string
	for _, family := range families.All() {
		all[0], all[1] = append(all[0], of[family][0]), append(all[1], of[family][1])
	}
	return strings.Join(all[0], ","), strings.Join(all[1], ",")
}

// startPlanes starts a control plane for each cluster and puts drover's
// kubeconfig for it where the config says.
func (s *Site) startPlanes(ctx context.Context, clusters []pools.Cluster, addrs []netip.Addr) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for i, c := range clusters {
		wg.Go(func() {
			pods, services := networks(cmp.Or(c.IPFamilies, pools.IPv4Only), i)
			p, err := controlplane.Start(ctx, controlplane.Config{
				Name: c.Name, BinDir: s.built.Kubernetes, Dir: filepath.Join(s.Dir, "planes", c.Name),
				Address: addrs[i], Port: planePort,
				EtcdPort: 2379 + 10*i, EtcdPeerPort: 2380 + 10*i, ControllerPort: 10257 + 10*i,
				PodCIDR: pods, ServiceCIDR: services,
				RBAC: filepath.Join(s.built.Root, "deploy", "rbac.yaml"),
				Exec: s.Command,
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				s.Planes[c.Name] = p
				err = s.admit(c, p)
			}
			if err != nil {
				errs = append(errs, err)
				return
			}
			s.built.say("control plane %s is up on %s", c.Name, p.Endpoint())
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// admit installs drover's kubeconfig for a cluster.
func (s *Site) admit(c pools.Cluster, p *controlplane.Cluster) error {
	if !filepath.IsLocal(c.Kubeconfig) {
		return fmt.Errorf("cluster %q: kubeconfig %q is not below the config's directory", c.Name, c.Kubeconfig)
	}
	content, err := os.ReadFile(p.Client)
	if err != nil {
		return err
	}
	path := filepath.Join(s.Dir, c.Kubeconfig)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// Expect returns what the config, together with nodes added to it, says of the
// machine that boots with mac; nil when it is none of the farm's.
func (s *Site) Expect(mac string, added ...pools.PoolNode) (*resolve.Plan, error) {
	farm, err := config.Load(s.farm, added...)
	if err != nil {
		return nil, err
	}
	m, err := pools.ParseMAC(mac)
	if err != nil {
		return nil, err
	}
	return farm.Resolve(resolve.Query{MAC: m}), nil
}

// KubectlPath returns the path of kubectl.
func (s *Site) KubectlPath() string { return filepath.Join(s.built.Kubernetes, "kubectl") }

// Get reads an object of a cluster, as its administrator.
func (s *Site) Get(ctx context.Context, cluster string, out any, args ...string) error {
	p := s.Planes[cluster]
	if p == nil {
		return fmt.Errorf("no control plane %q", cluster)
	}
	return get(ctx, p, out, args...)
}

// Close ends drover, the control planes and all machines, and removes the rack.
// The files of the run stay.
func (s *Site) Close() error {
	var wg sync.WaitGroup
	for _, p := range s.Planes {
		wg.Go(p.Stop)
	}
	wg.Wait()
	return s.Rack.Close()
}
