package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover/e2e/lab"
)

// wire is an Ethernet between two taps that loses and delays frames.
type wire struct {
	ends  [2]*os.File
	loss  float64 // percent
	delay time.Duration
	done  sync.WaitGroup
}

// The longest frame, and the number of frames under way in one direction. What does not fit is
// lost, as in a switch.
const (
	maxFrame = 1514
	underWay = 1 << 15
)

// openWire makes a tap in the namespace of this process, and one in the rack.
func openWire(rack *lab.Rack, loss float64, delay time.Duration) (*wire, error) {
	w := &wire{loss: loss, delay: delay}
	var err error
	if w.ends[0], err = openTap(machinesEnd); err != nil {
		return nil, err
	}
	type result struct {
		file *os.File
		err  error
	}
	other := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := rack.Enter(); err != nil {
			other <- result{nil, err}
			return
		}
		f, err := openTap(serverEnd)
		other <- result{f, err}
	}()
	r := <-other
	if r.err != nil {
		return nil, errors.Join(r.err, w.ends[0].Close())
	}
	w.ends[1] = r.file
	w.done.Go(func() { w.carry(w.ends[0], w.ends[1]) })
	w.done.Go(func() { w.carry(w.ends[1], w.ends[0]) })
	return w, nil
}

// openTap makes a tap in the namespace of the calling thread.
func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// frame is a frame on its way.
type frame struct {
	due   time.Time
	bytes []byte
}

// carry carries frames in one direction until the taps are closed.
func (w *wire) carry(from, to *os.File) {
	queue := make(chan frame, underWay)
	w.done.Go(func() {
		for f := range queue {
			if wait := time.Until(f.due); wait > 0 {
				time.Sleep(wait)
			}
			_, _ = to.Write(f.bytes) // a frame that the other end does not take is lost
		}
	})
	defer close(queue)
	var b [maxFrame]byte
	for {
		n, err := from.Read(b[:])
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil { // the tap is down
			time.Sleep(time.Millisecond)
			continue
		}
		if rand.Float64()*100 < w.loss {
			continue
		}
		select {
		case queue <- frame{time.Now().Add(w.delay), append([]byte(nil), b[:n]...)}:
		default:
		}
	}
}

func (w *wire) close() {
	for _, f := range w.ends {
		_ = f.Close() // only a tap, which ends with it
	}
	w.done.Wait()
}
