// Package client is the typed client of the Kubernetes objects that drover uses.
//
// [New] makes an [Interface] from a connection, and [Interface.CoreV1] and its siblings
// return the groups. Calls read as with client-go's Clientset, and have the same wire
// format: client.CoreV1().Nodes().Get(ctx, name, opts).
//
// The Clientset links the clients, types and apply configurations of all groups. The
// linker keeps their methods, because text/template can call any method by its name.
// They were half of the program. So nothing in cmd/drover imports client-go's kubernetes,
// discovery or leaderelection; a test there has the list.
//
// The package knows no limits of answers: those are in the transport of the connection,
// see [drover/kube/cluster.Cluster.Limit].
package client
