package state_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"drover/pools"
	"drover/state"
	"drover/state/wal"
)

// configVersion returns a config with some random bytes, which no compression makes shorter.
func configVersion(random int) pools.ConfigVersion {
	text := make([]byte, random)
	for i := range text {
		text[i] = byte(rand.IntN(256))
	}
	v := pools.ConfigVersion{ConfigEntry: pools.ConfigEntry{Time: epoch, Who: "config file", Way: pools.ConfigByFile}}
	v.Content = "server: {}\n# " + hex.EncodeToString(text) + "\n"
	v.Included = []pools.ConfigPart{{File: "conf.d/a.yaml", Content: "pools: []\n"}}
	v.SHA256 = configSum(v)
	return v
}

func configSum(v pools.ConfigVersion) string {
	sum := sha256.Sum256(fmt.Append(nil, v.Content, v.Included))
	return hex.EncodeToString(sum[:])
}

// loadConfigs adds configs, and each pushes out an older one once there are enough.
func loadConfigs(s *state.Store) {
	for {
		s.Configs.Add(configVersion(rand.IntN(2000)))
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond)
	}
}

// checkConfigs fails unless each config is whole, and there are as many as there may be.
func checkConfigs(t *testing.T, c *state.Configs) {
	t.Helper()
	all := c.List()
	if len(all) > pools.MaxConfigs {
		t.Errorf("%d configs are kept", len(all))
	}
	for i, e := range all {
		v, err := c.Get(e.Number)
		if err != nil || configSum(v) != e.SHA256 {
			t.Errorf("config %d is not whole: %v", e.Number, err)
		}
		if i > 0 && all[i-1].Number != e.Number+1 {
			t.Errorf("config %d is missing", e.Number+1)
		}
	}
}

// TestConfigs: the last 50 are there, whole, across a restart; and others read none of it.
func TestConfigs(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var last pools.ConfigVersion
	for i := range pools.MaxConfigs + 7 {
		last = configVersion(100)
		if last.Number = s.Configs.Add(last); last.Number != i+1 {
			t.Fatalf("got the number %d, want %d", last.Number, i+1)
		}
	}
	for _, when := range []string{"before", "after"} {
		checkConfigs(t, s.Configs)
		if all := s.Configs.List(); len(all) != pools.MaxConfigs || all[0].Number != last.Number || all[len(all)-1].Number != 8 {
			t.Errorf("%s a restart: got %d configs, the newest %+v", when, len(all), all[0])
		}
		if v, err := s.Configs.Get(last.Number); err != nil || !reflect.DeepEqual(v, last) {
			t.Errorf("%s a restart: got %+v, %v", when, v, err)
		}
		for _, number := range []int{-1, 0, 7, last.Number + 1} {
			if _, err := s.Configs.Get(number); !errors.Is(err, pools.ErrNoConfig) {
				t.Errorf("%s a restart: %d: got %v", when, number, err)
			}
		}
		if when == "before" {
			s = reopen(t, s, dir)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "drover.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %q, %v", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
	}
}

// TestConfigsBounded: long texts push out older ones, and one that is too long is kept without text.
func TestConfigsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	for range 6 {
		s.Configs.Add(configVersion(2 << 20))
	}
	all := s.Configs.List()
	if len(all) < 2 || len(all) > 4 || all[0].Number != 6 {
		t.Errorf("%d long configs are kept", len(all))
	}
	huge := s.Configs.Add(configVersion(4 << 20))
	if _, err := s.Configs.Get(huge); !errors.Is(err, pools.ErrNoConfig) || !strings.Contains(err.Error(), "too long") {
		t.Errorf("the text of a huge one: got %v", err)
	}
	if all := s.Configs.List(); all[0].Number != huge {
		t.Errorf("a huge one: got %+v", all[0])
	}
}

// TestConfigsDamaged: an entry that Add has not written is left out.
func TestConfigsDamaged(t *testing.T) {
	dir := t.TempDir()
	key := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	put(t, dir, wal.Change{Table: tableConfigs, Key: key(1), Value: []byte(`{"number": 2}`)}, wal.Change{Table: tableConfigs, Key: key(3), Value: []byte(`{"number": 3, "text": "bm8="}`)},
		wal.Change{Table: tableConfigs, Key: key(4), Value: []byte(`no JSON`)}, wal.Change{Table: tableConfigs, Key: []byte("x"), Value: []byte(`{"number": -1}`)})
	s := open(t, dir)
	if all := s.Configs.List(); len(all) != 1 || all[0].Number != 3 {
		t.Errorf("got %+v", all)
	}
	if _, err := s.Configs.Get(3); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a text that is none: got %v", err)
	}
}
