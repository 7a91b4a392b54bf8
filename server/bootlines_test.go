package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"drover/pools"
	"drover/pools/boots"
)

func TestBootLines(t *testing.T) {
	mac := pools.MAC{2, 0, 0, 0, 0, 1}
	var out bytes.Buffer
	log := withBoots(slog.New(slog.NewJSONHandler(&out, nil)), func(m pools.MAC) (boots.Record, bool) {
		return boots.Record{ID: "20261123T183000.000000001"}, m == mac
	}).With("part", "tftp")
	for _, tt := range []struct {
		name string
		log  func()
		want string
	}{
		{"a text", func() { log.Info("transfer", "mac", mac.String(), "file", "snponly.efi") }, "20261123T183000.000000001"},
		{"a MAC", func() { log.Info("transfer", "file", "snponly.efi", "mac", mac) }, "20261123T183000.000000001"},
		{"of the logger", func() { log.With("mac", mac.String()).Info("transfer") }, "20261123T183000.000000001"},
		{"without a boot", func() { log.Info("transfer", "mac", "02:00:00:00:00:02") }, ""},
		{"no MAC", func() { log.Info("transfer", "mac", "someone") }, ""},
		{"no machine", func() { log.Info("serving") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out.Reset()
			tt.log()
			var line struct{ Boot, Part string }
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if line.Boot != tt.want || line.Part != "tftp" {
				t.Errorf("got %s, want the boot %q", out.Bytes(), tt.want)
			}
		})
	}
}
