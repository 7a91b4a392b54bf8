package main

import (
	"time"

	"drover/e2e/bench/stats"
)

// CheckRow compares the ratio of a row, of one client or more, with 1.
func CheckRow(clients int, delay time.Duration, ratio stats.Ratio) stats.Check {
	return row{clients: clients, block: 1024, window: 1, delay: delay}.check(ratio, "atftpd", 1)
}
