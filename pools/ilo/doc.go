// Package ilo reads from HPE Moonshot chassis and from iLO which machines there
// are, and switches their power.
//
// There are few nouns. A [Slot] is a place in a chassis, c12n1: it stays when
// the cartridge in it is exchanged, so chassis and slot are what a machine is
// known by, and its MACs are what may change. A [Node] is the machine in a slot.
// An [Inventory] is what a chassis said it holds.
//
// [Parse] is pure: text of the chassis manager's command line goes in, an
// Inventory comes out. The text may be what a program read over SSH, or what
// somebody pasted from a terminal: tables are read by the line of dashes under
// their header and never by counting words, because asset tags hold anything
// and cells may be empty.
//
// What is not understood is never guessed. A row that is wrong is a [Note] of
// Problems with its line and its reason, and no Node; text that holds no table
// at all is an error. A power state that is not known is [Unknown], which is
// not off.
//
// [Scrape] and [ScrapeREST] ask a chassis, [ScrapeXMLData] and [ScrapeRedfish] an
// iLO. A [Namer] makes nodes of the farm of an Inventory, and compares them with
// those that are stored: the outcome is a list of [Change], right together or not
// at all. A [Sync] does so from time to time. [Power] has a driver for each way to
// switch a machine, and a [Switcher] the order in which that is done.
//
// The rules for passwords hold everywhere: one is sent once, to a chassis whose
// key is the one that is known, and is in no error and in no log.
//
// The package does not know who stores nodes, nor where its settings come from.
package ilo
