package bench

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// bounded is a Comm whose windows take no more than Config.Memory in all. All ranks
// contribute the same to a window, and so refuse it together. Memory nodes count as parts of
// the ranks' memory, evenly. In virtual time words exist from the first access on, a page at a
// time, and what counts is a pointer for each page.
type bounded struct {
	rma.Comm
	cfg   *Config
	taken *int64 // bytes at the caller's rank, since the run began
}

// simPage is the words of a page in virtual time.
const simPage = 512

// Unwrap returns the Comm below.
func (b *bounded) Unwrap() rma.Comm { return b.Comm }

// Split splits the Comm below; the part has the same bound.
func (b *bounded) Split(color, key int) (rma.Comm, error) {
	part, err := b.Comm.Split(color, key)
	if err != nil || part == nil {
		return nil, err
	}
	return &bounded{part, b.cfg, b.taken}, nil
}

// Allocate opens a window below if the bound allows it.
func (b *bounded) Allocate(spec rma.Spec) (*rma.Window, error) {
	words := int64(spec.Words())
	switch {
	case b.cfg.virtual != nil:
		words /= simPage
	case spec.Hosts == rma.MemoryNodes:
		words = words * int64(b.MemoryNodes()) / int64(b.Size())
	}
	*b.taken += 8 * words
	if *b.taken > b.cfg.Memory {
		return nil, b.cfg.tooLarge(*b.taken)
	}
	w, err := b.Comm.Allocate(spec)
	if errors.Is(err, rma.ErrMemory) {
		err = fmt.Errorf("locks is %d: take fewer: %w", b.cfg.Locks, err)
	}
	return w, err
}

// bound returns a Comm that keeps to Config.Memory.
func (c *Config) bound(of rma.Comm) (rma.Comm, error) {
	if c.Memory == 0 {
		return of, nil
	}
	if each := int64(c.Locks / of.Size()); each > c.Memory/8 && c.virtual == nil { // a word of data for each lock, whatever the lock
		return nil, c.tooLarge(8 * each)
	}
	return &bounded{of, c, new(int64)}, nil
}

func (c *Config) tooLarge(bytes int64) error {
	return fmt.Errorf("locks is %d, which takes at least %.3g GB of memory at each rank, and %.3g GB are free: take fewer: %w",
		c.Locks, float64(bytes)/1e9, float64(c.Memory)/1e9, ErrConfig)
}
