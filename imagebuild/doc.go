// Package imagebuild builds the images that machines boot from the network. The source is
// an OCI image or a directory. The result is a kernel, an initrd, a squashfs and a
// manifest. A build needs no root and no container engine, and unpacks nothing.
//
// A [Builder] describes one build, and [Builder.Build] runs it:
//
//  1. Packages oci, registry and layer read the source once. The headers of all layers become a tree
//     in memory, and the contents go into one unlinked temporary file. Digests are
//     verified before anything is used.
//  2. Package rootfs puts the layers on top of each other, removes files that machines
//     must not share, and adapts a few files of /etc.
//  3. An image without systemd, or without one kernel and its modules, is refused before
//     anything is written.
//  4. The kernel, the initrd (package initrd) and the whole tree, as one sorted tar stream
//     into tar2sqfs, are written to a hidden directory, which one rename makes visible.
//     Initrd and tree are compressed at the same time; an initrd whose contents are those
//     of an image that exists is copied.
//
// The result is images/NAME/ID/{kernel,initrd,root.squashfs,manifest.json}, where ID is a
// digest over the contents (package manifest). The same source gives the same ID. The link
// images/NAME/current has the current ID. A server reads that directory with [Open],
// [Dir.Lookup] and [Dir.List]. Generations stay until [Dir.Remove].
//
// Packages loaders and media, below this one, install boot loaders and write boot media
// with them.
//
// The package does not know what an image is for: it knows nothing of pools, nodes,
// clusters, how files are served, or the task of /init. Package engine, below it, builds
// a container image from a Dockerfile.
package imagebuild
