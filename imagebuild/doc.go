// Package imagebuild makes the images that machines boot from the network: an OCI
// image or a directory goes in; a kernel, an initrd, a squashfs and a manifest come
// out. It needs no root, no container engine and unpacks nothing.
//
// A [Builder] describes one build and [Builder.Build] runs it:
//
//  1. The source is read once (packages oci and layer). The headers of all its
//     layers become a tree in memory, the contents go into one unlinked temporary
//     file. Digests are verified before anything is used.
//  2. The layers are put on top of each other in that tree (package rootfs), files
//     that machines must not share are left out, and a few files of /etc are
//     adapted.
//  3. The kernel, the initrd (package initrd) and the whole tree (sorted, as one tar
//     stream into tar2sqfs) are written to a hidden directory, which then becomes
//     visible with one rename.
//
// The result is content-addressed: images/NAME/ID/{kernel,initrd,root.squashfs,
// manifest.json}, where ID is a digest over the contents alone. The same input
// gives the same ID. The link images/NAME/current names the ID in use.
// A server reads that directory with [Open], [Dir.Lookup] and [Dir.List].
//
// Packages loaders and media, below this one, install boot loaders and write boot
// media with them.
//
// The package does not know what an image is for: it knows nothing of pools,
// nodes, clusters, of how files are served, or of what /init does. It never
// talks to a registry: buildah, skopeo or docker buildx copy an image into an OCI
// layout.
package imagebuild
