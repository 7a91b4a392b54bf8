package dhcp

import "time"

// answer is a reply that is ready, nil for silence.
type answer struct {
	reply *message
	x     Exchange
}

// maxAcks is how many ACKs wait for the disk at most. A disk that keeps so many
// waiting hangs.
const maxAcks = 4096

// When a commit ends, all ACKs that waited for it could leave at once. Relay
// agents and switches have room for some packets, and lose the rest: so there is
// a pause after each run of so many. There is none while more
// requests come than can be answered.
const (
	ackRun   = 24
	ackPause = 300 * time.Microsecond
)

// ack sends the answers that wait for the disk, in the order of their commits,
// until there are no more to come. Those that share an fsync wait for it once.
func (s *Server) ack(line <-chan answer) {
	run := 0
	for a := range line {
		s.settle(&a)
		switch run++; {
		case len(line) == 0, s.Depth() > ackRun:
			run = 0
		case run == ackRun:
			run = 0
			time.Sleep(ackPause)
		}
	}
}

// settle sends one answer once its lease is durable. When that fails the
// client gets silence, and asks again.
func (s *Server) settle(a *answer) {
	defer s.rescue(&a.x)
	if err := a.x.wait(); err != nil {
		a.reply, a.x.Reply, a.x.Decision, a.x.Err = nil, "", NoAddress, err
	}
	s.finish(a)
}
