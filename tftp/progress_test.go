package tftp_test

import (
	"testing"
	"time"

	"drover/tftp"
)

// TestProgress checks the packets sent for each ACK, and after a timeout.
func TestProgress(t *testing.T) {
	const (
		ms    = time.Millisecond
		clock = -1 // no ACK: time passes
	)
	type step struct {
		at   time.Duration
		ack  int
		want string
	}
	for _, tt := range []struct {
		name    string
		window  int
		size    int64 // in blocks of 512
		options bool
		timeout time.Duration
		steps   []step
	}{
		{"block by block, the last one empty", 1, 1024, false, 0, []step{
			{1 * ms, 1, "2-2"}, {2 * ms, 2, "3-3"}, {3 * ms, 3, "done"},
		}},
		{"options first", 1, 600, true, 0, []step{
			{1 * ms, 0, "1-1"}, {2 * ms, 1, "2-2"}, {3 * ms, 2, "done"},
		}},
		{"a window at a time, the last one short", 4, 512 * 5, true, 0, []step{
			{1 * ms, 0, "1-4"}, {2 * ms, 4, "5-6"}, {3 * ms, 6, "done"},
		}},
		{"an empty file", 4, 0, true, 0, []step{{1 * ms, 0, "1-1"}, {2 * ms, 1, "done"}}},
		{"no apprentice: the same ACK twice sends nothing twice", 1, 5000, false, 0, []step{
			{1 * ms, 1, "2-2"}, {1 * ms, 1, ""}, {900 * ms, 1, ""}, {950 * ms, 2, "3-3"}, {951 * ms, 2, ""},
		}},
		{"an ACK of what was never sent", 1, 5000, false, 0, []step{{1 * ms, 2, ""}, {1 * ms, 65535, ""}, {2 * ms, 1, "2-2"}}},
		{"an old ACK", 2, 50000, false, 0, []step{{1 * ms, 2, "3-4"}, {2 * ms, 4, "5-6"}, {3 * ms, 2, ""}, {3 * ms, 3, ""}}},
		{"a gap: the window moves to it", 4, 50000, true, 0, []step{
			{10 * ms, 0, "1-4"}, {20 * ms, 2, "3-6"}, {30 * ms, 6, "7-10"},
		}},
		{"a gap told by each packet behind it is filled once", 4, 50000, true, 0, []step{
			{10 * ms, 0, "1-4"}, {20 * ms, 1, "2-5"}, {20 * ms, 1, ""}, {25 * ms, 1, ""}, {30 * ms, 5, "6-9"},
		}},
		{"the first block of a window is missing", 4, 50000, true, 0, []step{
			{10 * ms, 0, "1-4"}, {20 * ms, 4, "5-8"}, {30 * ms, 4, "5-8"}, {31 * ms, 4, ""}, {40 * ms, 8, "9-12"},
		}},
		{"and again", 4, 50000, true, 0, []step{
			{10 * ms, 0, "1-4"}, {20 * ms, 4, "5-8"}, {30 * ms, 4, "5-8"}, {55 * ms, 4, "5-8"},
		}},
		{"an ACK that the network doubled is no gap", 4, 50000, true, 0, []step{
			{10 * ms, 0, "1-4"}, {20 * ms, 4, "5-8"}, {21 * ms, 4, ""}, {30 * ms, 8, "9-12"},
		}},
		{"lost: again after a second, then two, four and eight", 1, 5000, false, 0, []step{
			{999 * ms, clock, ""}, {1000 * ms, clock, "1-1"}, {2999 * ms, clock, ""}, {3000 * ms, clock, "1-1"},
			{7000 * ms, clock, "1-1"}, {14999 * ms, clock, ""}, {15000 * ms, clock, "1-1"}, {23000 * ms, clock, "1-1"},
			{31000 * ms, clock, "gives up"},
		}},
		{"sooner where the network is fast, and patient again after progress", 1, 5000, false, 0, []step{
			{1 * ms, 1, "2-2"}, {250 * ms, clock, ""}, {251 * ms, clock, "2-2"}, {750 * ms, clock, ""}, {751 * ms, clock, "2-2"},
			{760 * ms, 2, "3-3"}, {1009 * ms, clock, ""}, {1010 * ms, clock, "3-3"},
		}},
		{"after the timeout that the client asked for", 1, 5000, true, 5 * time.Second, []step{
			{1 * ms, 0, "1-1"}, {5000 * ms, clock, ""}, {5001 * ms, clock, "1-1"}, {13001 * ms, clock, "1-1"},
		}},
		{"the options are lost", 1, 5000, true, 0, []step{{1000 * ms, clock, "options"}, {1001 * ms, 0, "1-1"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := tftp.NewProgress(tt.window, tt.size, tt.options, tt.timeout)
			for i, s := range tt.steps {
				got := ""
				if s.ack == clock {
					got = p.Late(s.at)
				} else {
					got = p.Ack(uint16(s.ack), s.at)
				}
				if got != s.want {
					t.Fatalf("step %d, ACK %d at %v: got %q, want %q", i+1, s.ack, s.at, got, s.want)
				}
			}
		})
	}
}

// TestRollover: block numbers have 16 bits, files have more blocks.
func TestRollover(t *testing.T) {
	const blocks = 3*65536 + 5
	for _, window := range []int{1, 7, 64} {
		p := tftp.NewProgress(window, (blocks-1)*512, false, 0)
		at, acks := time.Duration(0), 0
		for next := int64(min(window, blocks)); ; {
			at += time.Millisecond
			acks++
			got := p.Ack(uint16(next), at)
			if got == "done" {
				break
			}
			if old := p.Ack(uint16(next-int64(window)), at); got == "" || old != "" {
				t.Fatalf("window %d: ACK of block %d: got %q, and for an old one %q", window, next, got, old)
			}
			next = min(next+int64(window), blocks)
		}
		if want := (blocks + window - 1) / window; acks != want {
			t.Errorf("window %d: got %d ACKs, want %d", window, acks, want)
		}
	}
}
