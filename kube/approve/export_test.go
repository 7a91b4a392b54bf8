package approve

import "time"

// Evaluate returns the verdict of evaluate, and its reason.
func Evaluate(r *csr, key []byte, now time.Time) (verdict, why string) {
	d := evaluate(r, key, now)
	return string(d.verdict), d.why
}
