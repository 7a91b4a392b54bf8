package decode_test

import (
	"fmt"

	"drover/pools"
	"drover/pools/config/decode"
)

func ExampleJSON() {
	n := pools.PoolNode{Pool: "web", Node: pools.Node{Name: "m1", Tags: []string{"debug"}}}
	fmt.Println(decode.JSON([]byte(`{"tags": null, "ignore": true}`), &n), n.Name, n.Tags, n.Ignore)
	fmt.Println(decode.JSON([]byte(`{"ip": "10.28.0", "tag": "debug"}`), &n))
	// Output:
	// <nil> m1 [] true
	// ip: "10.28.0" is not an IP address (write 10.28.0.2)
	// unknown key "tag" (did you mean "tags"?)
}
