package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/e2e/fixture"
	"drover/pools"
	"drover/pools/config"
	"drover/pools/config/mistake"
	"drover/pools/resolve"
)

// TestBadConfigs has one file for each kind of mistake. Each must be reported with its
// line and a hint.
func TestBadConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d bad configs, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = config.Parse(filepath.Base(file), data)
			mistakes, ok := errors.AsType[mistake.Errors](err)
			if !ok {
				t.Fatalf("got error %v, want mistake.Errors", err)
			}
			for _, m := range mistakes {
				if m.Line == 0 || m.Hint == "" {
					t.Errorf("%v: line %d and hint %q, want both", m, m.Line, m.Hint)
				}
			}
			fixture.Golden(t, strings.TrimSuffix(file, ".yaml")+".golden", mistakes.Error()+"\n")
		})
	}
}

func TestTenMistakesAtOnce(t *testing.T) {
	_, err := config.Load("testdata/bad/ten.yaml")
	mistakes, _ := errors.AsType[mistake.Errors](err)
	lines := map[int]bool{}
	for _, m := range mistakes {
		lines[m.Line] = true
	}
	if len(mistakes) < 10 || len(lines) < 10 {
		t.Errorf("got %d mistakes in %d lines, want ten of both at least:\n%v", len(mistakes), len(lines), err)
	}
}

func TestLoadMissingFile(t *testing.T) {
	if _, err := config.Load("testdata/none.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	for _, file := range append(files, "../resolve/testdata/farm.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		farm, err := config.Parse("fuzz.yaml", data)
		if err != nil {
			if _, ok := errors.AsType[mistake.Errors](err); !ok {
				t.Errorf("got error %T, want mistake.Errors", err)
			}
			return
		}
		for _, n := range farm.Nodes() {
			p := farm.Resolve(resolve.Query{MAC: n.MACs[0], Firmware: pools.BIOS})
			if p == nil || p.Node != n.Name {
				t.Fatalf("node %q does not resolve to itself", n.Name)
			}
			for field, o := range p.Why() {
				if o.Path == "" {
					t.Errorf("%s has no origin", field)
				}
			}
		}
	})
}
