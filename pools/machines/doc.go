// Package machines finds machines. From a query, a MAC, an address or the name of a
// node it finds the machine, its [resolve.Plan], its address and its boots.
//
// There is one type, [Directory]. It joins the farm in force with the tables of
// leases, boots and next boots, and the list of unknown machines. A protocol calls it
// once for each request, and each call reads the lease table at most once:
//
//	DHCP packet              Resolve(query), Owns(address, mac)
//	TFTP name, image by URL  Serves(address), At(address)
//	script, config, join     Of(mac)
//	API server, page         Named(node), Booting(node), Unknown()
//
// A MAC alone does not identify every machine. A node can be declared by its
// switch port, and there can be several pools for unknown hardware. DHCP knows
// the port; HTTP, TFTP and a renewal that passes the relay agent do not. For them
// the lease has the node and the pool that DHCP found; see
// [resolve.Farm.ResolveLeased]. Only the first program of a boot shows by its DHCP
// options which pool the machine belongs to: for the later ones the lease has it.
//
// The package decides nothing about a machine: the farm does. It changes nothing,
// holds no lock and keeps no state. It knows neither the protocols nor how the tables
// are stored.
package machines
