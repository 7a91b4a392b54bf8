// Package httpboot is the HTTP listener that nodes talk to while they boot.
//
// There is one type, [Server]. It finds the machine that asks, and translates
// its Plan:
//
//	GET  /boot/{mac}                             the iPXE script of one boot
//	GET  /boot.ipxe                              a script that finds the right one by MAC
//	GET  /images/{name}/{generation}/{file}      kernel, initrd or root.squashfs
//	GET  /loaders/{file}                         loaders for UEFI HTTP Boot
//	GET  /grub/{file}                            files of a GRUB that was fetched by HTTP
//	POST /node/{mac}/config, /join, /events      requests of a running boot
//
// Images and loaders are no secret: every client gets them. The script carries
// the nonce of a boot, so only the address that belongs to the MAC gets it. The
// requests below /node/ need the nonce as well, and their answers are sealed to
// the key that claimed the boot first, see [drover/pools.Seal]. Any machine that
// can send from a node's address while the node boots can be that node: the
// network has to keep addresses to their owners.
//
// Firmware always gets a script. A ROM that meets an HTTP error goes on to the
// next boot device and stays there; so a problem of the server (no image yet, a
// full disk) is a script that shows it on the console, waits and asks again. A
// server that restarts delays a boot and never strands one.
//
// Package script writes the scripts, package queue puts the clients of root
// images in order. This package does not know where leases, boots, tokens and
// images are kept, and decides nothing about a machine: the Plan does.
package httpboot
