// Swarm boots many machines at once from a real "drover serve", from the first DISCOVER of the
// firmware until the node is online. All machines are state machines in this one process; no
// guest runs, and none joins a cluster.
//
// Each machine leases an address three times (as a PXE ROM and as iPXE, with the options that
// real ones sent, and as drover-init), reads its loader by TFTP, its script, kernel and initrd
// as iPXE does, and then uses the packages of drover-init: the root image by Range, in turn and
// checked by chunk ([drover/node/fetch]), the config sealed to a key of its own
// ([drover/node/client]), and events in the background ([drover/node/report]). A step that fails
// resets the machine, as firmware does.
//
//	machines' namespace                         server's namespace
//	relay agents 10.29.0.N, one a rack ── wire ── 10.28.0.2 drover serve
//	machines 10.29.1.0 and up                    (a rack of e2e/lab)
//
// The wire is a veth pair; with -loss or -delay, two taps with this process between them, which
// works on kernels without netem. Loss and delay hit every packet, of TCP as well.
//
// With -servers 2 there are two servers (docs/two-servers.md), each in a namespace of its own on one
// wire, and -kill names the steps at which one of them is killed.
//
// The tool exits with 1 if a machine has not come through, or if one got what is another's.
package main
