package hook

import (
	"math/rand/v2"

	"github.com/rmalock/rmalock/rma"
)

// Delay has the rank sleep before steps, to widen races. delay gets each operation, Flush,
// Await and Backoff before it is done, and returns how many nanoseconds the rank sleeps
// first; 0 or less for none.
func Delay(c rma.Comm, delay func(Event) (ns int64)) rma.Comm {
	return decorate(c, func(s handleID, below rma.Transport) rma.Transport {
		return &delayer{Transport: below, id: s, delay: delay}
	})
}

// Jitter is a function for Delay that delays one step in every so many, at random,
// by up to maxNs nanoseconds. Ranks draw from different sequences; the same seed
// gives the same ones again. The function is for the calling rank alone; c is the Comm to
// decorate.
func Jitter(c rma.Comm, seed uint64, every int, maxNs int64) func(Event) int64 {
	r := source(c, seed)
	return func(Event) int64 {
		if r.IntN(every) != 0 {
			return 0
		}
		return 1 + r.Int64N(maxNs)
	}
}

// source is a rank's own sequence.
func source(c rma.Comm, seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(c.Rank())))
}

// delayer is the Transport of Delay.
type delayer struct {
	rma.Transport
	id    handleID
	delay func(Event) int64
}

func (d *delayer) pause(e Event) {
	if ns := d.delay(e); ns > 0 {
		d.id.comm.Sleep(ns)
	}
}

func (d *delayer) Issue(o rma.Operation) {
	d.pause(d.id.issue(o))
	d.Transport.Issue(o)
}

func (d *delayer) Flush(target int, r *rma.Results) (int, error) {
	d.pause(d.id.event(StepFlush, target, 0))
	return d.Transport.Flush(target, r)
}

func (d *delayer) Await(q rma.Waiting) (int, int64, error) {
	d.pause(d.id.await(&q))
	return d.Transport.Await(q)
}

func (d *delayer) Backoff(target, disp int, seen int64, try int) error {
	d.pause(d.id.backoff(target, disp, seen, try))
	return d.Transport.Backoff(target, disp, seen, try)
}
