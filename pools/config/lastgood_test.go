package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/pools/config"
)

// kept is a farm that was in force once, with its copy.
func kept(t *testing.T) (source config.Source, data []byte) {
	t.Helper()
	_, path, data := newLive(t, &memory{})
	source = config.Source{File: path, Copy: filepath.Join(t.TempDir(), "copy")}
	live, err := config.NewLive(source, &memory{})
	if err != nil {
		t.Fatal(err)
	}
	if s := live.Status(); s.Refused != nil || s.Unkept != nil || s.Since.IsZero() || len(s.Digest) != 64 {
		t.Fatalf("status %+v", s)
	}
	return source, data
}

// A server whose config file is refused starts from the last content that was in force.
func TestStartsFromLastGood(t *testing.T) {
	for name, spoil := range map[string]func(file string, data []byte) error{
		"a mistake": func(file string, data []byte) error {
			return os.WriteFile(file, append(data, "nodes: 5\n"...), 0o600)
		},
		"no YAML": func(file string, _ []byte) error { return os.WriteFile(file, []byte("{"), 0o600) },
		"empty":   func(file string, _ []byte) error { return os.WriteFile(file, nil, 0o600) },
		"gone":    func(file string, _ []byte) error { return os.Remove(file) },
		"a directory": func(file string, _ []byte) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Mkdir(file, 0o700)
		},
		"too large": func(file string, data []byte) error {
			return os.WriteFile(file, append(data, bytes.Repeat([]byte("# \n"), 2<<20)...), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			source, data := kept(t)
			if err := spoil(source.File, data); err != nil {
				t.Fatal(err)
			}
			farm, refused, err := source.Load()
			if err != nil || refused == nil || len(farm.Nodes()) == 0 {
				t.Fatalf("got refused %v, error %v", refused, err)
			}
			live, err := config.NewLive(source, &memory{})
			if err != nil {
				t.Fatal(err)
			}
			if live.Status().Refused == nil || len(live.Farm().Nodes()) != len(farm.Nodes()) {
				t.Errorf("status %+v", live.Status())
			}
			// The repaired file is in force again.
			if name == "a directory" {
				if err := os.Remove(source.File); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(source.File, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := live.Reload(); err != nil || live.Status().Refused != nil {
				t.Errorf("repaired: %v, status %+v", err, live.Status())
			}
		})
	}
}

// The copy is private, follows the file, and is not for another file, or for a server
// whose copy is itself refused.
func TestLastGoodCopy(t *testing.T) {
	source, data := kept(t)
	info, err := os.Stat(source.Copy)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	other := config.Source{File: filepath.Join(t.TempDir(), "other.yaml"), Copy: source.Copy}
	if _, err := config.NewLive(other, &memory{}); err == nil {
		t.Error("a server with another file starts from the copy")
	}
	copied, err := os.ReadFile(source.Copy)
	if err != nil || !bytes.HasSuffix(copied, data) {
		t.Errorf("copy %.80q, %v", copied, err)
	}
	if err := os.WriteFile(source.Copy, append(copied, "nodes: 5\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source.File, append(data, "sever: {}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = config.NewLive(source, &memory{})
	if err == nil || !strings.Contains(err.Error(), "sever") || !strings.Contains(err.Error(), source.Copy) {
		t.Errorf("both refused: %v", err)
	}
}

// A copy that cannot be written is told, and no reason to refuse the config.
func TestLastGoodNotWritten(t *testing.T) {
	_, path, _ := newLive(t, &memory{})
	live, err := config.NewLive(config.Source{File: path, Copy: filepath.Join(t.TempDir(), "missing", "copy")}, &memory{})
	if err != nil || live.Status().Unkept == nil || live.Status().Refused != nil {
		t.Errorf("%v, status %+v", err, live.Status())
	}
}
