// Package queue orders the clients that download root images.
//
// A [Queue] lets a limited number of clients download at a time, in the order of their
// first requests. Without it, a thousand machines that are switched on together would
// share the network, and none would boot for an hour. In order, the first are up after a
// minute.
//
// A client that arrives while all slots are taken gets a position in the queue. The
// queue recognizes it by its address, so the client needs no token. A client keeps its
// position as long as it repeats its request at least every 20 seconds. A free slot is
// reserved for the first client in the queue for as long. The queue is in RAM only: it
// is empty after a restart of the server.
//
// Clients have a rank. Declared machines stand before others, and others have a share of
// the slots only, so that nobody can keep declared machines from their images by taking
// slots.
//
// The package does not know images, HTTP or machines. Its caller decides the
// ranks.
package queue
