package script

import (
	"sync"
	"time"

	"drover/pools"
	"drover/pools/resolve"
)

// issuedBoot is the image that a boot loads, and the nonce of the boot.
type issuedBoot struct {
	image Image
	dir   string // of the image in URLs, with a slash at its end
	nonce string

	nextBoot pools.NextBoot // that it was issued for
	imageRef string         // likewise
	unproved bool           // the client may have forged its address
	issued   time.Time
}

// reuseTime is the time for which an issued boot is reused. No machine gets from its
// script to that of its next boot in less time, so a request within it is for the same
// script.
const reuseTime = 30 * time.Second

// issuedBoots has the boots that were issued to scripts fetched by name. A boot fetches
// such a script more than once: a loader probes its size, repeats a request whose answer
// was lost, or requests one script under several names, as GRUB and U-Boot do. A new
// nonce for each request could void the one before, which the machine may use.
type issuedBoots struct {
	mu    sync.Mutex
	byMAC map[pools.MAC]*issuedSlot
}

// issuedSlot holds the issued boot of one machine. Its lock is held while a
// boot is issued.
type issuedSlot struct {
	mu   sync.Mutex
	boot issuedBoot // none if boot.issued is zero
}

// get returns the boot that was issued to the machine of a script within reuseTime, or issues
// one. A client that has proved its address gets none that was issued to another one.
func (b *issuedBoots) get(to *script, issue func() (issuedBoot, error)) (issuedBoot, error) {
	s := b.slot(to.MAC)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boot.fresh() && s.boot.nextBoot == to.NextBoot && s.boot.imageRef == to.Image && (to.unproved || !s.boot.unproved) {
		return s.boot, nil
	}
	boot, err := issue()
	if err != nil {
		return boot, err
	}
	boot.nextBoot, boot.imageRef, boot.unproved, boot.issued = to.NextBoot, to.Image, to.unproved, time.Now()
	s.boot = boot
	return boot, nil
}

// image returns the image of the last boot that was issued to the machine of p; false if
// there is none, or if the machine has another image by now.
func (b *issuedBoots) image(p *resolve.Plan) (Image, bool) {
	s := b.slot(p.MAC)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.boot.image, !s.boot.issued.IsZero() && s.boot.imageRef == p.Image
}

func (b issuedBoot) fresh() bool { return !b.issued.IsZero() && time.Since(b.issued) < reuseTime }

// maxIssued is the number of machines above which old boots are removed.
const maxIssued = 4096

func (b *issuedBoots) slot(mac pools.MAC) *issuedSlot {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byMAC == nil {
		b.byMAC = map[pools.MAC]*issuedSlot{}
	}
	if len(b.byMAC) >= maxIssued {
		b.removeOld()
	}
	s := b.byMAC[mac]
	if s == nil {
		s = &issuedSlot{}
		b.byMAC[mac] = s
	}
	return s
}

// removeOld removes boots that are not reused any more, except those in use.
func (b *issuedBoots) removeOld() {
	for mac, s := range b.byMAC {
		if !s.mu.TryLock() {
			continue
		}
		if !s.boot.fresh() {
			delete(b.byMAC, mac)
		}
		s.mu.Unlock()
	}
}

func (b *issuedBoots) forget(mac pools.MAC) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byMAC, mac)
}

// Forget makes the next script of a machine begin a new boot. It is called when
// the firmware of the machine sends a DISCOVER, and when a node has claimed the
// boot.
func (r *Renderer) Forget(mac pools.MAC) { r.issued.forget(mac) }
