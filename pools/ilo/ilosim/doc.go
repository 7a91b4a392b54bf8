// Package ilosim is a Moonshot chassis, and an iLO, that are not there: they
// listen on loopback, say what the real ones say, and can be told to fail as
// the real ones do.
//
// A [Chassis] holds [Node]s and speaks SSH ([Chassis.ServeSSH]) and HTTP
// ([Chassis.Handler]); an [ILO] is one server with its own management
// processor. Powering a node takes time, as it does in iron, and a hook is told
// of it, so that a lab can start a virtual machine for it.
//
// What the real ones say was taken from the code and the recordings of people
// who have them. What nobody has published (the pager, the time that a login
// takes, most of REST on a chassis) is an assumption, and said to be one where
// it is made.
//
// The package imports nothing of drover: what tests drover must not share its
// mistakes.
package ilosim
