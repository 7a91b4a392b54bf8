package doctor

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// tokenEnd returns the end that a token tells, a JWT; the zero time if it tells none. The
// token is not checked: the API server does that.
func tokenEnd(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var c struct {
		End int64 `json:"exp"`
	}
	if json.Unmarshal(claims, &c) != nil || c.End <= 0 {
		return time.Time{}
	}
	return time.Unix(c.End, 0)
}
