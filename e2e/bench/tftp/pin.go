package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	pin "github.com/pin/tftp/v3"
)

// servePin serves with the library github.com/pin/tftp, as package tftp would if it used
// that library.
func servePin(ctx context.Context, dir, addr string) error {
	s := pin.NewServer(func(name string, rf io.ReaderFrom) error {
		f, err := os.Open(filepath.Join(dir, filepath.Base(name)))
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		rf.(pin.OutgoingTransfer).SetSize(info.Size())
		_, err = rf.ReadFrom(bufio.NewReaderSize(f, 64<<10))
		return err
	}, nil)
	s.SetTimeout(time.Second)
	s.SetBackoff(func(int) time.Duration { return 0 })
	defer context.AfterFunc(ctx, s.Shutdown)()
	return s.ListenAndServe(addr)
}
