// Package queue puts the clients of root images in order.
//
// A [Queue] lets a bounded number of clients download at a time, first come,
// first served. Without it, a thousand machines that are switched on together
// would share the network so thinly that none boots for an hour; one after the
// other, the first are up after a minute.
//
// A client that comes while all slots are taken gets a ticket. Its address is
// its ticket: the queue gives nothing out and stores nothing. A client keeps its
// position as long as it asks again now and then. A slot that becomes free is
// kept for the first client in the queue until that comes. A server that starts
// anew begins with an empty queue.
//
// The package does not know images, HTTP or machines. Its caller decides which
// clients are known machines.
package queue
