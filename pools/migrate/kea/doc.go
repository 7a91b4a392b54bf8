// Package kea reads the configs of ISC's Kea: kea-dhcp4.conf and kea-dhcp6.conf, JSON
// with comments.
//
// Subnets, shared networks, pools of addresses, reservations and options are taken over.
// Client classes are where their test is one that drover's match has: a part of the vendor
// class, the architecture, the user class of iPXE.
package kea
