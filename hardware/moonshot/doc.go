// Package moonshot reads HPE Moonshot chassis and switches their nodes.
//
// A [pools.Slot] is a position in a chassis, c12n1. It stays the same when its cartridge is
// exchanged: chassis and slot identify a machine, and its MACs may change. An
// [Inventory] is the content of a chassis, a [Manager] is the connection to one, over
// SSH or REST.
//
// [Parse] is pure: the text of the manager's command line goes in, an Inventory
// comes out. The text may come over SSH or may be pasted from a terminal. Tables
// are read by the line of dashes under their header and never by counting words,
// because asset tags hold anything and cells may be empty.
//
// The parser never guesses. A row that is not readable becomes a [Note] in Problems, with
// its line and the reason, and no [Node]. Text without any table is an error.
//
// The package does not know the farm or the source of logins.
package moonshot
