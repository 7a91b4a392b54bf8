// Package moonshot reads HPE Moonshot chassis and switches their nodes.
//
// A [Slot] is a position in a chassis, c12n1. It stays when the cartridge in it is
// exchanged: chassis and slot identify a machine, and its MACs may change. An
// [Inventory] is the content of a chassis, a [Manager] is the connection to one, over
// SSH or REST.
//
// [Parse] is pure: the text of the manager's command line goes in, an Inventory
// comes out. The text may come over SSH or may be pasted from a terminal. Tables
// are read by the line of dashes under their header and never by counting words,
// because asset tags hold anything and cells may be empty.
//
// Text that is not understood is never guessed. A wrong row is a [Note] of Problems
// with its line and its reason, and no [Node]; text without any table is an error.
//
// The package does not know the farm, nor where logins come from.
package moonshot
