package power_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"drover/cmd/drover/cli"
	"drover/e2e/clitest"
	"drover/e2e/ilosim"
	"drover/pools/config"
)

// TestImportYAML: what is printed stands in a config file as it is; --output
// keeps what was filled in; --dry-run writes nothing.
func TestImportYAML(t *testing.T) {
	t.Chdir(t.TempDir())
	c := ilosim.New(1, 2, 2, 1)
	flags := clitest.Chassis(t, c)
	code, out, errs := drover(t, "import moonshot "+flags+" --pool compute --tag debug --ip-template 10.28.{{.Cartridge}}.{{.Node}}")
	if code != 0 || !strings.Contains(errs, "m1: 4 nodes: 4 new\n") {
		t.Fatal(code, errs)
	}
	farmText := `server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
tags: {debug: {kernelArgs: debug}}
` + strings.Replace(out, "name: compute", "name: compute\n    image: debian-12", 1)
	farm, err := config.Parse("drover.yaml", []byte(farmText))
	if err != nil || len(farm.Nodes()) != 4 || farm.Nodes()[3].IP.String() != "10.28.2.2" || farm.Nodes()[3].Tags[0] != "debug" {
		t.Fatalf("%v\n%s", err, farmText)
	}
	if err := os.WriteFile("drover.yaml", []byte(farmText), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = drover(t, "import moonshot "+flags+" --pool compute -c drover.yaml --dry-run")
	if code != 0 || !strings.HasSuffix(out, "m1: 4 nodes: 4 same\n") || errs != "" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}

	file := "import moonshot " + flags + " --pool compute --output nodes.yaml"
	if code, out, errs := drover(t, file+" --dry-run"); code != 0 || !strings.Contains(out, "+ m1c1n1  94:57:a5:01:01:00\n") {
		t.Error(code, out, errs)
	}
	if _, err := os.Stat("nodes.yaml"); err == nil {
		t.Error("--dry-run wrote a file")
	}
	if code, out, errs := drover(t, file); code != 0 || out != "m1: 4 nodes: 4 new\n" || errs != "" {
		t.Error(code, out, errs)
	}
	text, err := os.ReadFile("nodes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(text), "name: m1c1n1", "name: m1c1n1, ip: 10.28.9.9", 1)
	if err := os.WriteFile("nodes.yaml", []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Edit("c2n2", func(n *ilosim.Node) { n.MACs[0] = "94:57:a5:01:ff:00" })
	if code, out, errs := drover(t, file+" --diff"); code != 0 || !strings.Contains(out, "~ m1c2n2  macs [94:57:a5:01:02:08] -> [94:57:a5:01:ff:00]\n") {
		t.Error(code, out, errs)
	}
	text, err = os.ReadFile("nodes.yaml")
	if err != nil || !strings.Contains(string(text), "10.28.9.9") || !strings.Contains(string(text), "94:57:a5:01:ff:00") {
		t.Errorf("got %v\n%s", err, text)
	}
}

// TestImportFile: a pasted transcript, and what is kept of a live one.
func TestImportFile(t *testing.T) {
	t.Chdir(t.TempDir())
	c := ilosim.New(1, 3, 1, 2)
	c.Edit("c1n1", func(n *ilosim.Node) { n.AssetTag = c.Password })
	flags := clitest.Chassis(t, c)
	code, live, errs := drover(t, "import moonshot "+flags+" --pool compute --nodes c1,c3n1 --nic A --save-transcript said")
	if code != 0 {
		t.Fatal(errs)
	}
	said, err := os.ReadFile("said/m1.txt")
	if err != nil || strings.Contains(string(said), "horse") || strings.Contains(string(said), "127.0.0.1") || !strings.Contains(string(said), "[removed]") {
		t.Errorf("got %v\n%s", err, said)
	}
	code, pasted, errs := drover(t, "import moonshot --from-file said/m1.txt --pool compute --nodes c1,c3n1 --nic A")
	if code != 0 || pasted != live || strings.Contains(pasted, "m1c2n1") || strings.Count(pasted, "94:57") != 2 {
		t.Errorf("exit %d\n%s\nwant what the chassis gave:\n%s%s", code, pasted, live, errs)
	}
	for _, tt := range []struct {
		name, text string
		code       int
		says       string
	}{
		{"no table", "hello\n", 1, "no table of MACs"},
		{"no rights", "Error: user is not authorized to use this command.\n", 5, "not authorized"},
		{"a torn row", strings.Replace(string(said), "94:57:a5:01:02:01", "94:57:a5:01:0", 1), 3, `c2n1: NIC 2: "94:57:a5:01:0" is not a MAC`},
	} {
		if err := os.WriteFile("x.txt", []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := drover(t, "import moonshot --from-file m1=x.txt --pool compute"); code != tt.code || !strings.Contains(errs, tt.says) {
			t.Errorf("%s: exit %d: %s, want exit %d that says %q", tt.name, code, errs, tt.code, tt.says)
		}
	}
}

// TestImportUsage: mistakes on the command line are found before anybody is
// asked, and have the exit code that import says.
func TestImportUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("DROVER_ILO_PASSWORD", "")
	for _, tt := range []struct{ line, says string }{
		{"import moonshot --pool p", "--chassis or --from-file is missing"},
		{"import moonshot --chassis m1=x", "--pool is missing"},
		{"import moonshot --pool p --chassis m1=x", "no password"},
		{"import moonshot --pool p --chassis m1=x --password-file nowhere", "no such file"},
		{"import moonshot --pool p --chassis 10.0.0.1", "NAME=10.0.0.1"},
		{"import moonshot --pool p --chassis m1=ftp://x", "ssh:// or https://"},
		{"import moonshot --pool p --chassis m1=root:x@y", "want [NAME=]ADDRESS"},
		{"import moonshot --pool p --chassis m1=x --chassis m1=y", "m1 is there twice"},
		{"import moonshot --pool p --chassis m1=x --chassis m2=x", "x is there twice"},
		{"import moonshot --pool p --chassis m1=x --chassis m2=y --host-key SHA256:a", "for one --chassis"},
		{"import moonshot --pool p --chassis m1=x --from-file y", "give one of them"},
		{"import moonshot --pool p --chassis m1=x --via telnet", "want auto, ssh or rest"},
		{"import moonshot --pool p --chassis m1=x --nodes web", "chooses no nodes"},
		{"import moonshot --pool p --chassis m1=x --nic C", "want all"},
		{"import moonshot --pool p --chassis m1=x --name-template m{{.Node}}", "one name"},
		{"import moonshot --pool p --chassis m1=x --apply --output y", "give neither"},
		{"import moonshot --pool p --chassis m1=x -o table", "text, json or yaml"},
		{"import moonshot --pool p --from-file nowhere", "no such file"},
		{"import moonshot --pool p --from-file y --password x", "unknown flag: --password"},
		{"import moonshot c1n1", "no such file"},
		{"import ilo --pool p", "--hosts is missing"},
		{"import ilo --hosts 10.0.0.1", "--pool is missing"},
		{"import ilo --pool p --hosts 10.0.0.0/8", "more than 4096"},
		{"import ilo --pool p --hosts 10.0.0.9-10.0.0.1", "ends before it begins"},
		{"import ilo --pool p --hosts x --via redfish", "no password"},
		{"import ilo --pool p --hosts x/y", "want a name"},
	} {
		code, out, errs := drover(t, tt.line)
		want := cli.Usage
		if tt.says == "no such file" || tt.says == "no password" {
			want = cli.Failed
		}
		if code != want || out != "" || !strings.Contains(errs, tt.says) {
			t.Errorf("drover %s: exit %d\n%s%s\nwant exit %d that says %q", tt.line, code, out, errs, want, tt.says)
		}
	}
}

// TestImportMany: twenty chassis in one run, of which one has a wrong password
// and one is the same as another.
func TestImportMany(t *testing.T) {
	t.Chdir(t.TempDir())
	var flags []string
	for i := range 20 {
		c := ilosim.New(byte(i), 45, 1, 2)
		c.Profile = []ilosim.Profile{ilosim.Modern, ilosim.Legacy14, ilosim.Legacy1}[i%3]
		if i == 7 {
			c.Password = "another"
		}
		if i == 9 {
			for x := 1; x <= 45; x++ {
				c.Edit(fmt.Sprintf("c%dn1", x), func(n *ilosim.Node) { n.MACs = []string{fmt.Sprintf("94:57:a5:08:%02x:00", x)} })
			}
		}
		f := clitest.Chassis(t, c)
		flags = append(flags, strings.Replace(f, "m1=", fmt.Sprintf("m%d=", i), 1))
	}
	if err := os.WriteFile("pass", []byte("correct horse"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := drover(t, "import moonshot "+strings.Join(flags, " ")+" --legacy --parallel 20 --pool compute --dry-run")
	if code != 3 || !strings.Contains(errs, "m7: login refused") || strings.Count(out, "45 nodes: 45 new") != 18 || !strings.Contains(out, "m9: 45 nodes: 45 conflict") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// TestImportREST and the iLOs: over HTTPS, with pins.
func TestImportREST(t *testing.T) {
	t.Chdir(t.TempDir())
	c := ilosim.New(1, 3, 1, 2)
	s, err := ilosim.ServeHTTPS("127.0.0.1:0", c.Handler(ilosim.Href))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Setenv("DROVER_ILO_PASSWORD", c.Password)
	line := "import moonshot --chassis m1=https://" + s.Addr + " --known-certs certs --pool compute --dry-run"
	if code, out, errs := drover(t, line); code != 0 || !strings.Contains(out, "m1: 3 nodes: 3 new") || !strings.Contains(errs, "pinned sha256:") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := drover(t, line+" --tls-pin sha256:00"); code != 5 || out != "" || !strings.Contains(errs, "certificate") {
		t.Errorf("another pin: exit %d\n%s%s", code, out, errs)
	}
	c.Inject(ilosim.NullMACs, ilosim.Always)
	if code, _, errs := drover(t, line); code != 1 || !strings.Contains(errs, "--via ssh") {
		t.Errorf("no MACs: exit %d: %s", code, errs)
	}
}

func TestImportILO(t *testing.T) {
	t.Chdir(t.TempDir())
	var hosts []string
	sims := map[string]*ilosim.ILO{}
	for i, gen := range []int{3, 4, 5, 6} {
		sim := ilosim.NewILO(gen, byte(i+1))
		s, err := ilosim.ServeHTTPS("127.0.0.1:0", sim.Handler())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		hosts = append(hosts, s.Addr)
		sims[s.Addr] = sim
	}
	slices.Sort(hosts)
	t.Setenv("DROVER_ILO_PASSWORD", "")
	line := "import ilo --hosts " + strings.Join(hosts, ",") + " --known-certs certs --pool compute -o json --dry-run"
	code, out, errs := drover(t, line)
	if code != 3 || strings.Count(out, `"kind": "new"`) != 3 || strings.Count(out, `"kind": "incomplete"`) != 1 || strings.Contains(out, "ff:ff") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	t.Setenv("DROVER_ILO_PASSWORD", "correct horse")
	for _, s := range sims {
		s.NoXMLData = true
	}
	code, out, errs = drover(t, line)
	if code != 3 || strings.Count(out, `"kind": "new"`) != 3 || !strings.Contains(errs, "404") {
		t.Errorf("without xmldata: exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs := drover(t, "import ilo --hosts 127.0.0.1-127.0.0.3 --known-certs certs --pool compute --timeout 1s"); code != 4 || !strings.Contains(errs, "none of 3 addresses") {
		t.Errorf("nobody there: exit %d: %s", code, errs)
	}
}
