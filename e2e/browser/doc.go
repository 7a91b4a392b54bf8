// Package browser has a real Chromium, and tests the page of a server (web/page) with it: each
// view and form, live boots, the keyboard alone, and reading without scripts. The server is that of
// drover serve, without its sockets for nodes: boots are put into its table. e2e has the boot of a
// machine that is watched.
//
// With DROVER_E2E=1 the tests keep pictures of what they see in screenshots/browser of drover's cache,
// which their log names. The next run replaces them.
package browser
