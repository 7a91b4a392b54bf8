package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/e2e/fixture"
)

// TestRestart: a disk that hangs, in sync(2) and in the kernel's own reboot, does not keep the
// machine from being reset.
func TestRestart(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hangs string
		want  string
	}{
		{"all returns", "", "sync at 0s\nstop at 0s\nreset at 0s\n"},
		{"sync hangs", "sync", "sync at 0s\nstop at 5s\nreset at 5s\n"},
		{"all hangs", "sync stop reset", "sync at 0s\nstop at 5s\nreset at 1m5s\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var did fixture.Log
			start, hang := time.Now(), make(chan struct{})
			part := func(name string) func() {
				return func() {
					did.Printf("%s at %v", name, time.Since(start))
					if strings.Contains(tt.hangs, name) {
						<-hang
					}
				}
			}
			restart(part("sync"), part("stop"), part("reset"))
			close(hang)
			if got := did.String(); got != tt.want {
				t.Errorf("%s: got\n%swant\n%s", tt.name, got, tt.want)
			}
		})
	}
}
