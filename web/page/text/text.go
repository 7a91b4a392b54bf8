// Package text writes times, sizes and changes of nodes for people.
package text

import (
	"fmt"
	"time"
)

// Seconds formats a duration within a boot: "1.5 s", "24 s".
func Seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// Ago formats a long duration in one unit: "90 s", "5 min", "3 h", "4 days".
func Ago(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// Clock formats a time: "2026-11-20 12:00:05 UTC".
func Clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Size formats a number of bytes: "260 MB".
func Size(n int64) string {
	if n < 10e6 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d MB", n/1e6)
}
