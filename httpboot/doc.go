// Package httpboot is the HTTP listener for nodes that boot.
//
// There is one type, [Server]. It finds the machine of a request, and translates its
// Plan:
//
//	GET  /boot/{mac}                             the iPXE script of one boot
//	GET  /boot.ipxe                              a script that finds the right one by MAC
//	GET  /images/{name}/{generation}/{file}      kernel, initrd or root.squashfs
//	GET  /loaders/{file...}                      loaders for UEFI HTTP Boot, also in subdirectories
//	GET  /grub/{file...}                         files of a GRUB that was fetched by HTTP
//	POST /node/{mac}/config, /join, /events      requests of a running boot
//
// Images and loaders are public: every client gets them. The script contains the nonce
// of a boot, so only a client with the machine's address gets it. The requests below
// /node/ also need the nonce, and their answers are sealed to the key that claimed the
// boot first; see [drover/pools.Seal]. A machine that can send from a node's address
// while the node boots can act as that node: the network has to prevent that.
//
// Firmware always gets a script. After an HTTP error a ROM boots from the next device
// and does not come back. So a problem of the server (no image yet, a full disk) is a
// script that shows it on the console, waits and tries again. A restart of the server
// delays a boot, but does not end it.
//
// Package script writes the scripts, package nodeconfig makes the config of a node, and
// package queue orders the clients of root images. This package does not know where leases, boots, tokens and images are kept,
// and decides nothing about a machine: the Plan does.
package httpboot
