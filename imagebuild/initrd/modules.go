package initrd

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"drover/imagebuild/rootfs"
)

// DefaultModules returns the names of the kernel modules that every initrd for a
// processor, such as amd64, contains, if the kernel has them: drivers of the network cards
// of servers and virtual machines, and the modules that mount the root image; of disks the
// common ones, for the inventory. USB and keyboards wait for the root file system. Cards on
// the boards of desktop computers (Atheros, JMicron, nForce, Yukon) are not among them.
func DefaultModules(arch string) []string {
	names := strings.Fields(`
		squashfs overlay loop af_packet bonding 8021q

		virtio_pci virtio_mmio virtio_net vmxnet3 hv_netvsc xen-netfront ena gve

		mlx4_core mlx4_en mlx5_core igb igbvf igc ixgbe ixgbevf i40e iavf ice fm10k e1000 e1000e
		tg3 bnx2 bnx2x bnxt_en be2net cxgb4 enic qede qlcnic netxen_nic sfc nfp ionic
		atlantic amd-xgbe r8169 8139cp 8139too pcnet32 ne2k-pci

		nvme ahci sd_mod virtio_blk

		realtek broadcom marvell motorcomm at803x`)
	if arch == "amd64" {
		return names
	}
	// Cards of systems on a chip, which a device tree or ACPI names. Kernels of PCs have some
	// of the drivers, too.
	return append(names, strings.Fields(`
		xgene-enet xgene-enet-v2 hns3 hclge hclgevf hns_enet_drv hns_dsaf hns_mdio nicpf nicvf thunder_bgx
		netsec qcom-emac mvneta mvpp2 fsl-dpaa2-eth fsl-enetc macb dwmac-generic genet`)...)
}

// essentialModules returns the modules that every node needs to mount its root.
func essentialModules() []string { return []string{"squashfs", "overlay", "loop"} }

// moduleSet describes the modules of a kernel, from the files that depmod wrote, and the
// modules that were chosen for the initrd.
type moduleSet struct {
	dir     *rootfs.Node
	version string
	deps    map[string][]string // path in dir -> paths
	byName  map[string]string   // normal name -> path in dir
	builtin map[string]bool     // normal names
	soft    map[string][]string // normal name -> names or aliases
	aliases map[string][]string // alias without wildcards -> normal names
	chosen  map[string]bool     // paths

	decompressesXZ bool // the kernel does, modules

	configured []string // softdep lines of modprobe.d
}

// normalName returns a module's name as the kernel writes it. File names and people use
// '-' and '_' alike.
func normalName(s string) string { return strings.ReplaceAll(s, "-", "_") }

// moduleName returns the normal name of a module file.
func moduleName(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return normalName(base)
}

// newModuleSet reads the files that depmod wrote.
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
	for _, line := range softdeps(t) {
		s.softLine(line)
		s.configured = append(s.configured, line)
	}
	var err error
	s.decompressesXZ, err = decompressesXZ(t, version)
	return s, err
}

// modprobeDirs are the directories of modprobe.d(5), the most important first: a file
// hides those of its name in the others.
var modprobeDirs = []string{"etc/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d"}

// softdeps returns the softdep lines of modprobe.d.
func softdeps(t *rootfs.Tree) (lines []string) {
	files := map[string]*rootfs.File{}
	for _, dir := range modprobeDirs {
		d := t.Lookup(dir)
		if d == nil {
			continue
		}
		for name := range d.Children {
			if _, hidden := files[name]; strings.HasSuffix(name, ".conf") && !hidden {
				files[name] = nil // also for a link to /dev/null, which is how an operator switches a file off
				if n := t.Lookup(dir + "/" + name); n != nil && n.File.Kind == tar.TypeReg && n.File.Size <= 1<<20 {
					files[name] = n.File
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name] == nil {
			continue
		}
		b, err := files[name].Content()
		if err != nil {
			continue // reading it again for the squashfs reports the error
		}
		text := strings.ReplaceAll(string(b), "\\\n", " ")
		for line := range strings.Lines(text) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "softdep" {
				lines = append(lines, strings.Join(fields, " "))
			}
		}
	}
	return lines
}

// lines calls fn with each line of a file in the modules' directory, except empty lines
// and comments. A missing file has none. Debian's largest, modules.alias, has 1.5 MB.
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

// read returns the contents of a file in the modules' directory, at most limit bytes. A
// missing file is empty.
func (s *moduleSet) read(name string, limit int64) ([]byte, error) {
	n := s.lookup(name)
	if n == nil || n.File.Kind != tar.TypeReg {
		return nil, nil
	}
	if n.File.Size > limit {
		return nil, fmt.Errorf("usr/lib/modules/%s/%s: %d bytes is not a sensible size", s.version, name, n.File.Size)
	}
	return n.File.Content()
}

// lookup returns a file by its path in the modules' directory, or nil. It follows no
// links out of the directory (build, source).
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

// softLine reads "softdep NAME pre: A B post: C". At run time the kernel calls modprobe
// for these modules, and an initrd has no modprobe.
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

// aliasLine reads "alias PATTERN NAME", if the pattern has no wildcards. Soft
// dependencies name such aliases: libcrc32c depends on crc32c, an alias of
// crc32c_generic.
func (s *moduleSet) aliasLine(line string) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != "alias" || strings.ContainsAny(fields[1], "*?[:") {
		return
	}
	alias := normalName(fields[1])
	s.aliases[alias] = append(s.aliases[alias], normalName(fields[2]))
}

// choose chooses the modules for the initrd. A missing module of want is ignored. The
// modules of must have to exist, as files or built in.
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
		if n := s.lookup(file); n == nil || n.File.Kind != tar.TypeReg {
			return fmt.Errorf("usr/lib/modules/%s/%s is missing, although modules.dep lists it: run \"depmod %s\" in the image",
				s.version, file, s.version)
		}
	}
	return nil
}

// add chooses a module, by normal name or alias, and the modules that it depends on.
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
func (s *moduleSet) files() []string { return slices.Sorted(maps.Keys(s.chosen)) }
