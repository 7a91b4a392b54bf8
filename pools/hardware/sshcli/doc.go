// Package sshcli is the SSH client for the command lines of management
// processors. [Dial] logs in, [Console.Run] executes a command: over exec where the
// processor has it, else in an interactive shell with a prompt and a pager.
//
// Old firmware has old algorithms, host keys that nobody certified, and accounts
// that three wrong passwords lock. So a key is pinned at first use, and a password
// is sent once.
//
// [Visible], [IsPager] and [CutPrompt] undo what a terminal adds to a text; they
// also serve text that was pasted from one.
//
// The package does not know any command.
package sshcli
