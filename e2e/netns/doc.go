// Package netns has small networks for tests of DHCP, with clients of other projects (ISC
// dhclient, udhcpc of BusyBox, dhcpcd, systemd-networkd) and relay agents.
//
// A [Namespace] is an isolated network; [Namespace.Link] connects it to another one. A
// [Client] is a program of some [Kind] on an interface, with its files: [Client.Start]
// starts it, and [Client.Wait] waits until it has got, renewed or lost a lease, and
// returns the values of the lease. Everything ends with the test.
//
// The clients cannot change the host: each has mounts, a host name and a network of its
// own. The package knows no server and expects no particular answers. It needs root,
// iproute2 and the Debian packages of the clients; it needs no running service, udev or
// D-Bus.
package netns
