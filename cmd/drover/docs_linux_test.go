package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"drover/e2e/fixture"
	"drover/e2e/ilosim"
	"drover/e2e/manual"
	"drover/pools"
	"drover/pools/resolve"
	"drover/state"
)

const sourceRoot = "../.."

// notHere are the commands of the manual that these tests do not run, each with the
// test that does, or with the reason why none can.
func notHere() map[string]string {
	const (
		farm     = "TestReadmeFarm (e2e) types it"
		clusters = "TestManualClusters (e2e) types it"
		admin    = "it needs a cluster; TestAdminCluster (e2e) runs helm and kubectl so"
		demo     = "it needs a cluster; make demo-farm runs kubectl so, and a test reads the objects (e2e/admin)"
		hosts    = "it needs a cluster with flannel; TestExternalHost (e2e) runs the bundle so, TestExternalHosts (e2e/controlplane) the rest"
		itself   = "it runs this test"
		long     = "it takes minutes, and decides by figures"
		archive  = "it downloads packages that the tests do not install"
		enforces = "it needs a cluster with a network plugin that enforces NetworkPolicies, which the lab has not"
		initrd   = "it is for the initramfs of another system; TestRootImageByTFTP (server) fetches that name"
	)
	return map[string]string{
		"make test":                    itself,
		"make demo":                    "it takes minutes of six virtual machines and control planes; the e2e tests boot the same lab",
		"make demo KEEP=1":             "make demo, until Ctrl-C",
		"make demo-farm":               "it takes minutes of three virtual machines and an admin cluster; TestAdminCluster (e2e) is its smaller half",
		"make build":                   farm,
		"make install":                 farm,
		"make image":                   farm,
		"make server-image":            "it compiles for two architectures; TestAdminCluster (e2e) runs such an image",
		"make dist":                    "it compiles for two architectures; TestPackage (deploy/package) installs the package, deploy/sbom is tested",
		"make deb":                     "TestPackage (deploy/package) runs it for one architecture, and installs the package",
		"apt install ./drover_*.deb":   farm,
		"make bench":                   long,
		"make bench-dhcp":              long,
		"make bench-dhcp BENCH=-quick": long,
		"make bench-dhcp BENCH=-6":     long,
		"make bench-dhcp BENCH='-pages 200 -rounds 3'":                       long,
		"make bench-dhcp BENCH='-rounds 3 -json out.json'":                   long,
		"make bench-dhcp BENCH='-quick -only drover,kea -drover bin/drover'": long,
		"make bench-boot":                                                    long,
		"make bench-boot BENCH=-quick":                                       long,
		"make bench-boot BENCH='-only http,tftp'":                            long,
		"make bench-boot BENCH='-boots 5 -json out.json -keep'":              long,
		"make bench-tftp":                                                    long,
		"apt-get install shim-signed grub-efi-amd64-signed":                  archive,
		"apt-get install pxelinux syslinux-common":                           archive,
		`root=$(sed 's|.*drover.root=/\([^ ]*\).*|\1|' /proc/cmdline)`:       initrd,
		`busybox tftp -g -b 1468 -r "$root" -l /run/root.squashfs 10.28.0.2`: initrd,
		"apt-get install raspi-firmware":                                     archive,
		"cp /usr/lib/raspi-firmware/*.elf /usr/lib/raspi-firmware/*.dat /var/lib/drover/loaders/raspberry-pi":                                                                                      archive,
		"cp /usr/lib/linux-image-*-arm64/broadcom/bcm271*.dtb /var/lib/drover/loaders/raspberry-pi":                                                                                                archive,
		"drover image build --name debian-12 --file Dockerfile.image --build-arg K8S_SOURCE=apt":                                                                                                   archive,
		"drover image build --name debian-13 --file Dockerfile.image --build-arg K8S_SOURCE=apt --build-arg DEBIAN=trixie@sha256:35b8ff74ead4880f22090b617372daff0ccae742eb5674455d542bef71ef1999": archive,
		"drover image build --name debian-12 --file /usr/share/drover/node-image/Dockerfile.image --build-arg K8S_SOURCE=apt /usr/share/drover/node-image":                                         archive,
		"buildah bud --target appliance --build-arg K8S_SOURCE=apt --build-context drover=bin -f Dockerfile.image -t appliance .":                                                                  archive,
		"make bench-image":  long,
		"make bench-hosted": long, "make bench-hosted BENCH='-tenants 2 -alone'": long,
		"make swarm": long, "make swarm N=500 RACKS=10 SLOW=5 MAD=10 LOSS=1 DELAY=1ms": long,
		"make swarm N=10000 SWARM='-undeclared 1000 -patience 30m -json out.json'":                            long,
		"make swarm N=50 SWARM='-servers 2 -kill all'":                                                        long,
		"make bench-image BENCH='-rounds 9 -level 15'":                                                        long,
		"drover cluster prepare tenant-a --admin tenant-a-admin.conf --write /etc/drover/tenant-a.kubeconfig": clusters,
		"(umask 077; drover tenant kubeconfig tenant-a > tenant-a.kubeconfig)":                                "it needs an admin cluster; TestHosted (e2e/hosted) reads that Secret",
		"drover cluster check tenant-a":                                                                       clusters,
		"drover image build --name debian-12 oci:node":                                                        "it needs a container image; the tests of imagebuild build from such layouts",
		"drover image build --name debian-12 oci-archive:node.tar":                                            "likewise",
		"drover image build --name debian-12 docker-archive:saved.tar":                                        "likewise",

		"kubectl create namespace try":                              enforces,
		"kubectl --namespace try apply --filename nothing-out.yaml": enforces,
		"kubectl --namespace try run try --image busybox --restart Never --attach --rm -- nc -z -w 5 KUBERNETES_SERVICE_ADDRESS 443": enforces,
		"kubectl delete namespace try": enforces,

		"drover cluster prepare tenant-a --admin tenant-a-admin.conf": hosts,
		"drover host list":  hosts,
		"drover host check": hosts, "drover host check legacy1": hosts,
		"drover host invite legacy1 --program ./flanneld --program ./kube-proxy --program ./drover": hosts,
		"drover host proxy web.default:80 --listen 127.0.0.1:8080":                                  hosts,
		"drover host bundle legacy1 --program ./flanneld --program ./kube-proxy --program ./drover": hosts,
		"drover host show legacy1":                  hosts,
		"drover host rm legacy1":                    hosts,
		"tar -xf legacy1.tar && legacy1/install.sh": hosts,
		"curl http://web.default.svc.cluster.local": hosts,
		"/etc/drover-host/tenant-a/uninstall.sh":    hosts,

		// The chart.
		"helm install drover deploy/charts/drover --namespace farm --create-namespace --values values.yaml":                      admin,
		"kubectl --namespace farm rollout status deployment/drover":                                                              admin,
		"kubectl --namespace farm exec deployment/drover -- drover node list":                                                    admin,
		"kubectl --namespace farm apply --filename objects.yaml":                                                                 demo,
		"kubectl --namespace farm get tenants.drover.dev,machines.drover.dev --output wide":                                      demo,
		"(umask 077; kubectl --namespace farm exec deployment/drover -- drover tenant kubeconfig tenant-a >tenant-a.kubeconfig)": demo,
		"kubectl --kubeconfig tenant-a.kubeconfig get nodes":                                                                     demo,
		"helm upgrade drover deploy/charts/drover --namespace farm --values values.yaml":                                         admin,
		"kubectl apply --server-side --force-conflicts --filename deploy/charts/drover/crds":                                     admin,
	}
}

// lasting reports whether a command runs until it is ended.
func lasting(command string) bool {
	return command == "drover serve" || strings.HasPrefix(command, "drover boot watch") || strings.HasPrefix(command, "go run ./e2e/ilosim") ||
		strings.HasSuffix(command, " --watch") || strings.Contains(command, "watch=true")
}

// typist types the commands of the manual.
type typist struct {
	mu    sync.Mutex
	typed map[string]bool // by place
}

// hostKey is where a script keeps its [manual.Host].
type hostKey struct{}

// onHost gives a script a host of its own.
func onHost(env *testscript.Env) error {
	mounts, err := os.MkdirTemp("", "drover-host-")
	if err != nil {
		return err
	}
	env.Defer(func() { _ = os.Remove(mounts) })
	h, err := manual.NewHost("", mounts)
	if err != nil {
		return err
	}
	env.Defer(h.Close)
	h.Dir = env.WorkDir
	env.Values[hostKey{}] = h
	env.Setenv("HOME", env.WorkDir)
	source, err := filepath.Abs(sourceRoot)
	if err != nil {
		return err
	}
	env.Setenv("SOURCE", source)
	text, err := manual.Block(sourceRoot, "README.md", "yaml")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(env.WorkDir, "readme.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	out, err := h.Command(readmeHost).CombinedOutput()
	if err != nil {
		return fmt.Errorf("host of the README: %w: %s", err, out)
	}
	return nil
}

// readmeHost makes a host the one that the README describes.
const readmeHost = `ip link set lo up && ip link add eth1 type bridge && ip addr add 10.28.0.2/16 dev eth1 &&
	ip link set eth1 up && cp readme.yaml /etc/drover/drover.yaml`

// shell returns a command line of a script's host, with the script's environment.
func shell(ts *testscript.TestScript, line string) *exec.Cmd {
	cmd := ts.Value(hostKey{}).(*manual.Host).Command(line)
	cmd.WaitDelay = time.Minute // for what a daemon still writes
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "DEBIAN_FRONTEND=noninteractive"}
	return cmd
}

// host prepares a script's host: "host LINE".
func host(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: host LINE")
	}
	out, err := shell(ts, args[0]).CombinedOutput()
	if err != nil {
		ts.Fatalf("%s: %v\n%s", args[0], err, out)
	}
}

// page types the commands of a page, or of one of its sections: "page FILE [SECTION]".
func (y *typist) page(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: page FILE [SECTION]")
	}
	commands, err := manual.Read(sourceRoot, args[0])
	ts.Check(err)
	some := false
	for _, c := range commands {
		if len(args) == 2 && c.Section != args[1] {
			continue
		}
		some = true
		if notHere()[c.Text] == "" {
			y.run(ts, c)
		}
	}
	if !some {
		ts.Fatalf("%v has no commands", args)
	}
}

// run types a command, and fails when it fails.
func (y *typist) run(ts *testscript.TestScript, c manual.Command) {
	y.mu.Lock()
	y.typed[c.String()] = true
	y.mu.Unlock()
	ts.Logf("$ %s", c.Text)
	cmd := shell(ts, c.Text)
	if lasting(c.Text) {
		out, err := os.Create(filepath.Join(ts.Getenv("WORK"), "lasting.log"))
		ts.Check(err)
		defer out.Close()
		cmd.Stdout, cmd.Stderr = out, out
		ts.Check(cmd.Start())
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		ts.Defer(func() { _ = cmd.Process.Kill(); <-ended })
		if c.Text == "drover serve" {
			host(ts, false, []string{served})
		}
		return
	}
	var out fixture.Log // of both, in the order in which they come
	cmd.Stdout, cmd.Stderr = io.MultiWriter(ts.Stdout(), &out), io.MultiWriter(ts.Stderr(), &out)
	if err := cmd.Run(); err != nil {
		ts.Fatalf("%s: %v\n%s", c, err, out.String())
	}
}

// served waits until the server answers.
const served = "until curl -so health http://127.0.0.1:8443/healthz; do sleep 0.1; done"

// serve starts a server on the script's host, and waits until it answers:
// "serve ARGUMENT...".
func serve(ts *testscript.TestScript, neg bool, args []string) {
	line := "drover serve " + strings.Join(args, " ") + " >server.log 2>&1 & " + served
	host(ts, neg, []string{line})
}

// booted adds a boot of a node to the state in a directory: "booted DIR NODE MAC".
func booted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: booted DIR NODE MAC")
	}
	store, err := state.Open(ts.MkAbs(args[0]), state.Options{})
	ts.Check(err)
	mac, err := pools.ParseMAC(args[2])
	ts.Check(err)
	store.Boots.Discover(&resolve.Plan{Node: args[1], MAC: mac, Pool: "compute"}, time.Now())
	ts.Check(store.Close())
}

// hardwareOnHost is what the manual's chassis and iLOs are, all in one program.
func hardwareOnHost() {
	serve := func(addr string, c *ilosim.Chassis) {
		c.User, c.Password = "Administrator", "correct horse"
		if _, err := c.ServeSSH(addr + ":22"); err != nil {
			panic(err)
		}
	}
	serve("10.1.0.1", ilosim.New(1, 45, 1, 2))
	serve("10.1.0.2", ilosim.New(2, 45, 1, 2))
	for i, addr := range []string{"10.0.0.1", "10.0.0.2"} {
		ilo := ilosim.NewILO(4, byte(i))
		ilo.Chassis().User, ilo.Chassis().Password = "Administrator", "correct horse"
		if _, err := ilosim.ServeHTTPS(addr+":443", ilo.Handler()); err != nil {
			panic(err)
		}
	}
	_, _ = io.WriteString(os.Stdout, "ready\n")
	select {}
}

// TestManual types the commands of every page on a host of its own, and fails for a
// command that no script types, and that notHere does not explain either.
func TestManual(t *testing.T) {
	fixture.Root(t)
	y := &typist{typed: map[string]bool{}}
	t.Run("pages", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir: "testdata/docs", RequireExplicitExec: true, RequireUniqueNames: true, Setup: onHost,
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"host": host, "page": y.page, "serve": serve, "seed": seed, "booted": booted},
		})
	})
	if f := flagOf("test.run"); strings.Contains(f, "/") {
		return // some scripts only
	}
	left := notHere()
	for _, c := range allCommands(t) {
		if !y.typed[c.String()] && notHere()[c.Text] == "" {
			t.Errorf("%s: no script in testdata/docs types it", c)
		}
		delete(left, c.Text)
	}
	for _, text := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("notHere explains %q, which is in no page", text)
	}
}
