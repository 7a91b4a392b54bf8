// Package sshcli is the SSH client for the command lines of management
// processors. [Dial] logs in, [Console.Run] executes a command: over exec where the
// processor supports it, else in an interactive shell with a prompt and a pager.
//
// Old firmware has old algorithms, self-made host keys, and accounts that three wrong
// passwords lock. So a key is pinned at first use, and a password is sent once.
//
// [Visible], [IsPager] and [CutPrompt] undo the effects of a terminal on a text, also
// on a text that was pasted from a terminal.
//
// The package does not know any command.
package sshcli
