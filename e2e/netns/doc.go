// Package netns has small networks for tests of DHCP, and what lives on them
// that nobody here wrote: ISC dhclient, udhcpc of BusyBox, dhcpcd,
// systemd-networkd, and relay agents.
//
// A [Namespace] is a network with no way out; [Namespace.Link] lays a cable to
// another one. A [Client] is a program of some [Kind] on an interface, and what
// it keeps on disk between two starts: [Client.Start] starts it, [Client.Wait]
// waits until it says that it has a lease, has renewed it, or has lost it, and
// returns what it was told. All of it is gone when the test ends.
//
// What the clients would change of the host they cannot see: each has mounts, a
// host name and a network of its own. The package knows no server and expects
// no answer of a certain kind. It needs root, iproute2 and the Debian packages
// of the clients; no service, udev or D-Bus.
package netns
