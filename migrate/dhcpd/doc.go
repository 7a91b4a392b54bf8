// Package dhcpd reads the configs of ISC's DHCP server, dhcpd.conf and dhcpd6.conf.
//
// It brings their statements into the form of Kea's configs, which package kea reads. Classes and
// conditions are listed; the ranges that they or permissions keep machines out of are closed.
package dhcpd
