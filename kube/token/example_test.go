package token_test

import (
	"fmt"
	"strings"
	"time"

	"drover/kube/token"
)

// The groups of a token contain the node that it was minted for, under a seal that only
// the holder of the key can make.
func ExampleReadGrant() {
	key := []byte("the content of STATE/nodes.key")
	groups := token.Groups(key, "abcdef", "m1c29", time.Unix(1_800_000_000, 0))

	grant, ok := token.ReadGrant(strings.Split(groups, ","))
	fmt.Println(ok, grant.Expires.UTC())
	fmt.Println(grant.Verify(key, "abcdef", "m1c29"), grant.Verify(key, "abcdef", "m1c30"))
	// Output:
	// true 2027-01-15 08:00:00 +0000 UTC
	// true false
}
