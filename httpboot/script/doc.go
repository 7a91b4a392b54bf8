// Package script writes boot scripts and opens the files that boot programs
// fetch by name.
//
// [New] makes a [Renderer] from the server's URL, a directory of machines, the
// boots and the images. The renderer turns the Plan of a machine into a script
// for its boot program:
//
//   - [Renderer.IPXE] writes the script that iPXE fetches by HTTP, and
//     [Renderer.Finder] the one that finds it by MAC.
//   - [Renderer.TFTP] and [Renderer.HTTP] return the [Files] that GRUB,
//     PXELINUX and U-Boot fetch by name, one set for each protocol.
//     [Files.Open] writes their scripts, and opens kernels, initrds and loaders.
//
// A script begins a boot: it contains the nonce of [Boots.Issue]. Scripts that are
// fetched by name share one nonce for 30 seconds; see [Renderer.Forget]. A machine that
// cannot boot gets a script, too. It shows the problem on the console and tries again,
// since firmware boots from another device after an error.
//
// The texts are [Templates], which an operator may replace. All values are checked and
// quoted for the boot program, so that a value in a config cannot change the commands of
// a script.
//
// The package does not know HTTP or TFTP, nor where machines, boots and images are kept.
package script
