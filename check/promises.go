package check

import (
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// Promises opens a plan's lock on its machine and returns what it promises, by mode:
// nothing for a lock that is not lock.Checked. The error is that of opening it.
func Promises(p Plan) (map[lock.Mode]lock.Promise, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	out := map[lock.Mode]lock.Promise{}
	_, f := sim.Search{Node: p.nodes(), MemoryNodes: p.MemoryNodes}.Run(sim.Random(0, 0, 1), func(c rma.Comm) error {
		t, err := p.open(c)
		if err != nil {
			return err
		}
		if k, ok := t.(lock.Checked); ok && c.Rank() == 0 {
			out[lock.Exclusive] = k.Promise(lock.Exclusive)
			if p.Info.Shared {
				out[lock.Shared] = k.Promise(lock.Shared)
			}
		}
		return nil
	})
	if f != nil {
		return nil, f.Err
	}
	return out, nil
}
