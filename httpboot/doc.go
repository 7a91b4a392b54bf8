// Package httpboot is the HTTP listener that nodes talk to while they boot.
//
// There is one type, [Server]. It asks a [Resolver] for the Plan of the MAC in
// the path, and translates it:
//
//	GET  /boot/{mac}                             the iPXE script of one boot
//	GET  /boot.ipxe                              a script that finds the right one by MAC
//	GET  /images/{name}/{generation}/{file}      kernel, initrd or root.squashfs
//	GET  /loaders/{file}                         loaders for UEFI HTTP Boot
//	POST /node/{mac}/config, /join, /events      what a running boot asks and tells
//
// Who may ask for what: images and loaders are no secret, anybody gets them.
// The script carries the nonce of a boot, so only the address that belongs to
// the MAC gets it. The requests below /node/ need the nonce as well, and their
// answers are sealed to the key that claimed the boot first, see
// [drover/pools.Seal]. Whoever can send from a node's address while it boots
// can be that node: the network has to keep addresses to their owners.
//
// What firmware gets is a script whatever happens. A ROM that meets an HTTP
// error goes on to the next boot device and stays there; so what goes wrong on
// this side (no image yet, a disk that is full) is a script that says so on
// the console, waits and asks again. A server that restarts delays a boot and
// never strands one.
//
// The package does not know where leases, boots, tokens and images are kept:
// [Addresses], [Boots], [Joiner] and [Images] do. It decides nothing about a
// machine; that is the Plan's.
package httpboot
