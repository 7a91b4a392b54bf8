package hardware_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/e2e/fixture"
	"drover/e2e/ilosim"
	"drover/hardware"
	"drover/hardware/bmc"
	"drover/pools"
	"drover/pools/config"
)

type noAudit struct{}

func (noAudit) Add(...pools.AuditEntry) error { return nil }

// switcher starts a service for a farm.
func switcher(t *testing.T, dir, nodes string) *hardware.Service {
	t.Helper()
	farm, err := config.Parse(filepath.Join(dir, "drover.yaml"), []byte(`server: {interfaces: [eth1], address: 10.28.0.2}
subnets: [{cidr: 10.28.0.0/16}]
pools: [{name: compute, image: debian-12, nodes: [`+nodes+`]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	s := hardware.New()
	s.Farm, s.Audit, s.Log = fixed{farm}, noAudit{}, slog.New(slog.DiscardHandler)
	s.Switcher = bmc.Switcher{Poll: time.Millisecond, Wait: time.Minute}
	s.Login.Timeouts.Backoff = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// pxe boots a node from the network, and returns the error of the job.
func pxe(t *testing.T, s *hardware.Service, node string) string {
	t.Helper()
	job, err := s.Switch(t.Context(), "me", pools.PowerRequest{Action: "pxe", Nodes: []string{node}})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the job ends", func() bool {
		job, _ = s.Job(job.ID)
		return !job.Ended.IsZero()
	})
	return job.Nodes[0].Error
}

// TestPXEByFirmware: IPMI gets the boot type of the firmware that the machine booted with last.
func TestPXEByFirmware(t *testing.T) {
	for firmware, want := range map[pools.Firmware]string{pools.UEFIx64: "bootdev pxe options=efiboot", pools.BIOS: "bootdev pxe", "": "bootdev pxe"} {
		dir := t.TempDir()
		tool := `#!/bin/sh
cd ` + dir + `
case "$*" in
*status) echo Chassis Power is $(cat power);;
*" on") echo on >power;;
*" off") echo off >power;;
*bootdev*) echo "$*" >said; case "$*" in *efiboot) echo a004000000 >flags;; *) echo 8004000000 >flags;; esac;;
*"get 5") echo Boot parameter data: $(cat flags);;
esac
`
		for name, text := range map[string]string{"pass": "x\n", "power": "on", "flags": "0000000000", "tool": tool} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s := switcher(t, dir, `{name: n1, macs: ["52:54:00:00:00:01"], ip: 10.28.0.11, power: {driver: ipmi, address: bmc1, passwordFile: pass, program: ./tool}}`)
		s.Firmware = func(pools.MAC) pools.Firmware { return firmware }
		failed := pxe(t, s, "n1")
		said, err := os.ReadFile(filepath.Join(dir, "said"))
		if failed != "" || err != nil || !strings.HasSuffix(string(said), want+"\n") {
			t.Errorf("%q: got %s, %v, %q, want %q", firmware, failed, err, said, want)
		}
	}
}

// TestPXEOfASystem: a machine of the config is one of the systems of its processor. A refusal is in the
// job, with what the processor said.
func TestPXEOfASystem(t *testing.T) {
	b := ilosim.NewBMC(ilosim.Habits{IDs: []string{"System_0", "HGX_Baseboard_0"}, Login: ilosim.SessionLogin}, true, ilosim.Override{Target: "None", Enabled: "Disabled", Mode: "UEFI"})
	server, err := ilosim.ServeHTTPS("127.0.0.1:0", b.Handler())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pass"), []byte(b.Password), 0o600); err != nil {
		t.Fatal(err)
	}
	node := `{name: %s, macs: ["52:54:00:00:00:0%d"], ip: 10.28.0.1%d, power: {driver: redfish, address: "` + server.Addr + `", user: root, passwordFile: pass, tlsPin: "` + server.Pin + `"%s}}`
	s := switcher(t, dir, fmt.Sprintf(node, "n1", 1, 1, ", system: S1")+","+fmt.Sprintf(node, "n2", 2, 2, ""))
	if got := pxe(t, s, "n1"); got != "" {
		t.Error(got)
	}
	if got := pxe(t, s, "n2"); !strings.Contains(got, "has HGX_Baseboard_0") || !strings.Contains(got, "system in the machine's power") {
		t.Errorf("without a system: got %q", got)
	}
	b.Fault = ilosim.OverrideRefused
	if got := pxe(t, s, "n1"); !strings.Contains(got, "400 Bad Request (Base.1.12.ActionNotSupported: The license has no boot override.)") {
		t.Errorf("refused: got %q", got)
	}
	if on, _, starts, booted := b.Machine(); !on || starts != 1 || booted.Target != "Pxe" || b.Sessions() != 0 {
		t.Errorf("it is on: %t, %d starts, the last from %v, %d sessions", on, starts, booted, b.Sessions())
	}
}
