package initrd

import (
	"archive/tar"
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"drover/imagebuild/rootfs"
)

// DefaultModules are the names of the kernel modules that go into every initrd,
// as far as the kernel has them, together with those they depend on: network
// cards, and what it takes to mount the root image. Disks, USB and keyboards
// wait for the real root. More are added with [Builder.Modules].
func DefaultModules() []string {
	return strings.Fields(`
		squashfs overlay loop af_packet bonding 8021q

		virtio_pci virtio_mmio virtio_net vmxnet3 hv_netvsc xen-netfront ena gve

		mlx4_core mlx4_en mlx5_core igb igbvf igc ixgbe ixgbevf i40e iavf ice fm10k e1000 e1000e
		tg3 bnx2 bnx2x bnxt_en be2net cxgb3 cxgb4 enic qede qlcnic netxen_nic sfc nfp ionic
		atlantic r8169 8139cp 8139too forcedeth sky2 skge alx atl1c atl1e jme pcnet32 ne2k-pci

		xgene-enet xgene-enet-v2 hns3 hclge hclgevf hns_enet_drv hns_dsaf hns_mdio nicpf nicvf thunder_bgx
		amd-xgbe netsec qcom-emac mvneta mvpp2 fsl-dpaa2-eth fsl-enetc macb dwmac-generic genet

		realtek broadcom marvell motorcomm at803x`)
}

// essentialModules are those without which no node can mount its root.
func essentialModules() []string { return []string{"squashfs", "overlay", "loop"} }

// moduleSet is what depmod knows about the modules of a kernel, and the choice
// of those that go into the initrd.
type moduleSet struct {
	dir     *rootfs.Node
	version string
	deps    map[string][]string // path in dir -> paths
	byName  map[string]string   // normal name -> path in dir
	builtin map[string]bool     // normal names
	soft    map[string][]string // normal name -> names or aliases
	aliases map[string][]string // alias without wildcards -> normal names
	chosen  map[string]bool     // paths
}

// normalName is how the kernel writes a module's name: file names and people
// use '-' and '_' alike.
func normalName(s string) string { return strings.ReplaceAll(s, "-", "_") }

// moduleName is the normal name of a module file.
func moduleName(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return normalName(base)
}

// newModuleSet reads the files that depmod made.
func newModuleSet(t *rootfs.Tree, version string) (*moduleSet, error) {
	s := &moduleSet{dir: t.ModulesDir(version), version: version, deps: map[string][]string{}, byName: map[string]string{},
		builtin: map[string]bool{}, soft: map[string][]string{}, aliases: map[string][]string{}, chosen: map[string]bool{}}
	if s.dir == nil {
		return nil, fmt.Errorf("the image has no usr/lib/modules/%s: its kernel has no modules to boot with", version)
	}
	if s.dir.Children["modules.dep"] == nil {
		return nil, fmt.Errorf("usr/lib/modules/%s/modules.dep is missing: run \"depmod %s\" in the image", version, version)
	}
	for _, f := range []struct {
		name string
		line func(string)
	}{{"modules.dep", s.depLine}, {"modules.builtin", s.builtinLine}, {"modules.softdep", s.softLine}, {"modules.alias", s.aliasLine}} {
		if err := s.lines(f.name, f.line); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// lines calls fn for each line of a file in the modules' directory, if it is
// there. The text of Debian's largest, modules.alias, has 1.5 MB.
func (s *moduleSet) lines(name string, fn func(line string)) error {
	b, err := s.read(name, 64<<20)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		if text := strings.TrimSpace(string(line)); text != "" && text[0] != '#' {
			fn(text)
		}
	}
	return nil
}

// read returns the contents of a file in the modules' directory, empty when
// there is none.
func (s *moduleSet) read(name string, limit int64) ([]byte, error) {
	n := s.lookup(name)
	if n == nil || n.Kind != tar.TypeReg {
		return nil, nil
	}
	if n.Size > limit {
		return nil, fmt.Errorf("usr/lib/modules/%s/%s: %d bytes is not a sensible size", s.version, name, n.Size)
	}
	r, err := n.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(bufio.NewReader(r))
}

// lookup finds a file by its path in the modules' directory. Links out of it
// (build, source) are of no use in an initrd.
func (s *moduleSet) lookup(name string) *rootfs.Node {
	return (&rootfs.Tree{Root: s.dir}).Lookup(name)
}

func (s *moduleSet) depLine(line string) {
	file, deps, ok := strings.Cut(line, ":")
	if _, err := rootfs.CleanPath(file); !ok || err != nil {
		return
	}
	s.deps[file] = strings.Fields(deps)
	s.byName[moduleName(file)] = file
}

func (s *moduleSet) builtinLine(line string) { s.builtin[moduleName(line)] = true }

// softLine reads "softdep NAME pre: A B post: C". The kernel asks for these at
// run time, by calling modprobe, which an initrd without one never answers.
func (s *moduleSet) softLine(line string) {
	fields := strings.Fields(line)
	if len(fields) < 3 || fields[0] != "softdep" {
		return
	}
	name := normalName(fields[1])
	for _, f := range fields[2:] {
		if f != "pre:" && f != "post:" {
			s.soft[name] = append(s.soft[name], normalName(f))
		}
	}
}

// aliasLine reads "alias PATTERN NAME", as far as it serves soft dependencies
// such as that of libcrc32c on crc32c, an alias of crc32c_generic.
func (s *moduleSet) aliasLine(line string) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != "alias" || strings.ContainsAny(fields[1], "*?[:") {
		return
	}
	alias := normalName(fields[1])
	s.aliases[alias] = append(s.aliases[alias], normalName(fields[2]))
}

// choose picks the modules for the initrd. Those in want are taken if they are
// there, those in must have to be there, as modules or built in.
func (s *moduleSet) choose(want, must []string) error {
	for _, name := range must {
		name = normalName(strings.TrimSuffix(name, ".ko"))
		if s.byName[name] == "" && !s.builtin[name] {
			return fmt.Errorf("kernel %s has no module %q, and does not have it built in", s.version, name)
		}
		want = append(want, name)
	}
	for _, name := range want {
		s.add(normalName(name))
	}
	for file := range s.chosen {
		if n := s.lookup(file); n == nil || n.Kind != tar.TypeReg {
			return fmt.Errorf("usr/lib/modules/%s/%s is missing, although modules.dep lists it: run \"depmod %s\" in the image",
				s.version, file, s.version)
		}
	}
	return nil
}

// add chooses a module by normal name or alias, and what it needs.
func (s *moduleSet) add(name string) {
	file := s.byName[name]
	if file == "" {
		for _, real := range s.aliases[name] {
			if s.byName[real] != "" {
				s.add(real)
			}
		}
		return
	}
	if s.chosen[file] {
		return
	}
	s.chosen[file] = true
	for _, dep := range s.deps[file] {
		s.add(moduleName(dep))
	}
	for _, dep := range s.soft[name] {
		s.add(dep)
	}
}

// files returns the chosen modules, sorted by path.
func (s *moduleSet) files() []string {
	list := make([]string, 0, len(s.chosen))
	for file := range s.chosen {
		list = append(list, file)
	}
	slices.Sort(list)
	return list
}
