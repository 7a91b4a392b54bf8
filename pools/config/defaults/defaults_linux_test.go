package defaults_test

import (
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"drover/pools/config/defaults"
)

func TestSet(t *testing.T) {
	for _, tt := range []struct{ is, by, want string }{{"", "x", "x"}, {"a", "x", "a"}, {"", "", ""}, {"a", "", "a"}} {
		if defaults.Set(&tt.is, tt.by); tt.is != tt.want {
			t.Errorf("got %q, want %q", tt.is, tt.want)
		}
	}
}

// TestNoWrite: a value that is set is not written, not even with itself: others read it meanwhile.
func TestNoWrite(t *testing.T) {
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(page) }()
	value := (*int)(unsafe.Pointer(&page[0]))
	*value = 7
	if err := syscall.Mprotect(page, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			t.Errorf("it was written: %v", fault)
		}
	}()
	defaults.Set(value, 8)
}
