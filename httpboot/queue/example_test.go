package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"drover/httpboot/queue"
)

func Example() {
	q := queue.New(1, nil)
	first := queue.Client{Addr: netip.MustParseAddr("10.28.0.10")}
	second := queue.Client{Addr: netip.MustParseAddr("10.28.0.11")}

	turn, err := q.Enter(context.Background(), first, true, 0)
	fmt.Println("first:", err)
	_, err = q.Enter(context.Background(), second, true, 0)
	fmt.Println("second:", err, errors.As(err, new(queue.WaitError)))
	q.Leave(turn, true)
	_, err = q.Enter(context.Background(), second, true, 0)
	fmt.Println("second:", err)
	// Output:
	// first: <nil>
	// second: 1 of 1 that wait for an image true
	// second: <nil>
}
