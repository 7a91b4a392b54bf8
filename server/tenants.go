package server

import (
	"fmt"
	"os"

	"drover/deploy"
	"drover/pools"
	"drover/pools/config/declared"
	"drover/tenants"
)

// newTenants returns the controller of the control planes that run in the admin cluster,
// or nil without server.objects.
func (s *Server) newTenants() *tenants.Controller {
	farm := s.Live.Farm()
	cfg := farm.Config.Server
	if cfg.Objects.Namespace == "" {
		return nil
	}
	tenants := &tenants.Controller{
		Admin: tenants.AdminFile(farm.Path(cfg.AdminKubeconfig)), Namespace: cfg.Objects.Namespace, Identity: identity(),
		RBAC: rights, Log: s.part("tenants"),
		Generation: func(name string) int64 {
			if o := s.Live.Objects().Find(declared.Key{Kind: pools.KindTenant, Name: name}); o != nil {
				return o.Generation
			}
			return 0
		},
		Refused: func(name string) bool {
			_, wrong := s.Live.Objects().Wrong[declared.Key{Kind: pools.KindTenant, Name: name}]
			return wrong
		},
	}
	tenants.Set(farm.Clusters())
	return tenants
}

// adminProblems returns what is wrong in the admin cluster, by the part: objects of the farm,
// and the control planes of tenants as a whole.
func (s *Server) adminProblems() map[string]string {
	problems := s.objects.watcher.Problems()
	if err := s.tenants.Problem(); err != nil {
		problems["control planes"] = err.Error()
	}
	return problems
}

// rights returns the manifest with drover's rights in a tenant.
func rights(c pools.Cluster) []byte {
	return deploy.Manifest(deploy.Rights{Approve: c.Approver != pools.ByCluster, Serve: c.Serving, Hosts: c.HostNetwork != nil})
}

// identity names this process among the servers of a farm: pods of one host have its name.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "drover"
	}
	return fmt.Sprintf("%s_%d_%d", host, os.Getpid(), os.Getppid())
}
