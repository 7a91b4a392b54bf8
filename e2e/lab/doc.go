// Package lab is a virtual rack: machines that netboot, their network, and a server, all
// inside one network namespace.
//
// A [Rack] is the namespace with a bridge in it. A [Machine] is plugged in and
// switched on with [Rack.PowerOn], which gives a [Guest]: a QEMU process, its
// taps and its serial console as a file of lines with the seconds since
// power-on. Any other program in that network (drover itself, a control
// plane, a capture) is started with [Rack.Start] or, for short
// commands, [Rack.Run]; [Rack.Dial] connects to it from outside. A [Drover] is
// the server under test.
//
// The namespace has no way out and nothing outside of it is changed: no
// interface, route, sysctl or firewall rule of the host. [Rack.Close] ends
// every process in it and removes it. Processes are bound to the life of the
// one that opened the rack, so that even a SIGKILL leaves none behind, and what
// a crashed run of the same name left is removed by the next [Open].
//
// The guests are emulated (TCG). KVM is not used even where /dev/kvm opens: on
// hosts that are virtual machines themselves it starts and then dies inside
// the guest kernel.
//
// The package does not know what a machine boots, nor what Kubernetes is. It
// needs root, Linux, iproute2, QEMU and, for UEFI, OVMF.
package lab
