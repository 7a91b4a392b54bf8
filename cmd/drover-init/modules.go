package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"drover/node/cmdline"
	"drover/node/kmod"

	"golang.org/x/sys/unix"
)

// modprobe is the program that the kernel runs to load a module, with "-q -- NAME". For
// example mlx4_core requests mlx4_en, which makes the network card.
func modprobe(args []string, stderr io.Writer) int {
	m, err := systemModules()
	if err != nil {
		fmt.Fprintln(stderr, "modprobe:", err)
		return 1
	}
	code := 0
	for _, name := range args {
		if strings.HasPrefix(name, "-") {
			continue
		}
		// Most requests of the kernel are only tries: no message.
		if err := m.Load(name); err != nil {
			code = 1
		}
	}
	return code
}

// systemModules returns the modules of the running kernel.
func systemModules() (*kmod.Modules, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, fmt.Errorf("uname: %w", err)
	}
	dir, err := kmod.Dir("/", unix.ByteSliceToString(u.Release[:]))
	if err != nil {
		return nil, err
	}
	m, err := kmod.Open(dir)
	if err != nil {
		return nil, err
	}
	if line, err := os.ReadFile("/proc/cmdline"); err == nil {
		args, _ := cmdline.Parse(string(line)) // the boot reports its mistakes
		m.Args = args.Modules
	}
	return m, nil
}
