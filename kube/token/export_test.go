package token

import (
	"context"
	"log/slog"
	"time"
)

// TestMinter is the part of a [Minter] that a rotation uses, by token ID.
type TestMinter interface {
	Put(id string) error
	Signed(id string) (bool, error)
	Delete(id string) error
}

type testMinter struct{ TestMinter }

func (m testMinter) put(_ context.Context, t Token, _ time.Time) error { return m.Put(t.ID) }
func (m testMinter) signed(_ context.Context, t Token) (bool, error)   { return m.Signed(t.ID) }
func (m testMinter) Delete(_ context.Context, t Token) error           { return m.TestMinter.Delete(t.ID) }

// NewTestRotation returns a rotation that begins with tokens saved before.
func NewTestRotation(m TestMinter, ttl, every time.Duration, before []Shared, save func([]Shared) error) *Rotation {
	return &Rotation{
		minter: testMinter{m}, ttl: ttl, every: every, now: time.Now, log: slog.New(slog.DiscardHandler), save: save,
		load: func() ([]Shared, error) { return before, nil },
	}
}

// Newest returns the newest token that nodes can use.
func (r *Rotation) Newest() (Shared, bool) { return r.newest() }
