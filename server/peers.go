package server

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"

	"drover/httpboot"
	"drover/internal/atomicfile"
	"drover/pools"
	"drover/pools/boots"
	"drover/pools/resolve"
	"drover/server/catalog"
	"drover/server/peers"
	"drover/server/readiness"
)

// newPeers lets boots go on at the other servers of the config, and theirs here.
func (s *Server) newPeers(dir string, key []byte) error {
	cfg := &s.Live.Farm().Config.Server
	if len(cfg.Also) == 0 {
		return nil
	}
	id, _, err := atomicfile.ReadOrMakeKey(filepath.Join(dir, serverID), nil, func() ([]byte, error) { return []byte(rand.Text()), nil })
	if err != nil {
		return err
	}
	sum := sha256.Sum256(id)
	s.peers = &peers.Peers{
		Key: key, ID: hex.EncodeToString(sum[:8]), Version: s.version, Others: cfg.Others(),
		IsOwn: func(a netip.Addr) bool { return s.Live.Farm().IsLocal(a) }, Claims: s.Store.Boots.Claims, Told: s.hearClaim, Log: s.part("peers"),
	}
	s.Store.Boots.Sharing = &boots.Sharing{Server: [4]byte(sum[:4]), Tell: s.peers.Tell, Tentative: cfg.DHCP != pools.DHCPFull}
	return nil
}

// joinPeers connects what the other servers are compared with.
func (s *Server) joinPeers(images *catalog.Catalog, nodeTLS *httpboot.TLS, ready *readiness.Checks) {
	if s.peers == nil {
		return
	}
	d := &digests{key: s.peers.Key, server: s, images: images, tls: nodeTLS}
	s.peers.Digests = d.all
	s.http.Peers = s.peers.Answer
	ready.Peers = s.peers.Status
	s.metrics.WatchPeers(s.peers.Status)
}

// hearClaim takes a claim that another server tells.
func (s *Server) hearClaim(from string, c boots.Claim) {
	p := s.Machines.Of(c.MAC).Plan
	if p == nil {
		return
	}
	if s.Store.Boots.Told(p, c) {
		s.part("peers").Warn("one boot was claimed at two servers, by two keys: each has got the config of the node; see docs/two-servers.md", "mac", c.MAC, "node", p.Node, "server", from)
	}
}

// digests are what the servers of a farm must have alike. They are keyed: nobody who reads them
// can try values of the config.
type digests struct {
	key    []byte
	server *Server
	images *catalog.Catalog
	tls    *httpboot.TLS

	mu     sync.Mutex
	farm   *resolve.Farm // that config is of
	config string
}

// all returns the digests by the names that operators see.
func (d *digests) all() map[string]string {
	farm := d.server.Live.Farm()
	cfg := &farm.Config
	added, err := d.server.Store.Nodes.Nodes()
	slices.SortFunc(added, func(a, b pools.PoolNode) int { return cmp.Compare(a.Name, b.Name) })
	pin, _ := d.tls.Pin()
	_, https, _ := net.SplitHostPort(cfg.Server.HTTPS)
	generations := map[string]string{}
	for _, p := range cfg.Pools {
		if image, err := d.images.Lookup(p.Image); err == nil {
			generations[p.Image] = image.ID
		}
	}
	return map[string]string{
		"config":                    d.ofConfig(farm),
		"nodes of the API":          d.of(added, err),
		"images":                    d.of(generations),
		"server.dhcp":               d.of(cfg.Server.DHCP),
		"server.https, and its key": d.of(https, pin),
	}
}

// ofConfig returns the digest of all of the config but the server section.
func (d *digests) ofConfig(farm *resolve.Farm) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.farm != farm {
		cfg := farm.Config
		cfg.Server, cfg.Include = pools.Server{}, nil
		d.farm, d.config = farm, d.of(cfg)
	}
	return d.config
}

func (d *digests) of(values ...any) string {
	h := hmac.New(sha256.New, d.key)
	enc := json.NewEncoder(h)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return fmt.Sprintf("error: %v", err) // differs from that of a server without
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
