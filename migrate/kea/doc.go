// Package kea reads the configs of ISC's Kea: kea-dhcp4.conf and kea-dhcp6.conf, JSON
// with comments and <?include "file"?>.
//
// Subnets, shared networks, pools of addresses, reservations and plain options are taken
// over. Client classes are not: a pool that is for the members of one is left out.
// Package dhcpd brings its configs into the same form.
package kea
