package approve

import "time"

// Evaluate returns the verdict on a request by its content alone, and the reason.
func Evaluate(r *csr, key []byte, now time.Time) (verdict, why string) {
	d := evaluate(r, key, now)
	return string(d.verdict), d.why
}
