package hook

import "github.com/rmalock/rmalock/rma"

// comm is a Comm whose windows pass through transports that wrap makes.
type comm struct {
	rma.Comm
	origin int // rank in the Comm that was decorated
	wrap   func(s handleID, t rma.Transport) rma.Transport
}

// decorate returns c with decorated windows.
func decorate(c rma.Comm, wrap func(s handleID, t rma.Transport) rma.Transport) rma.Comm {
	return &comm{Comm: c, origin: c.Rank(), wrap: wrap}
}

// Unwrap is the Comm below.
func (c *comm) Unwrap() rma.Comm { return c.Comm }

// Split splits the Comm below and decorates the part.
func (c *comm) Split(color, key int) (rma.Comm, error) {
	part, err := c.Comm.Split(color, key)
	if err != nil || part == nil {
		return nil, err
	}
	return &comm{Comm: part, origin: c.origin, wrap: c.wrap}, nil
}

// Allocate opens a window below and decorates it.
func (c *comm) Allocate(spec rma.Spec) (*rma.Window, error) {
	w, err := c.Comm.Allocate(spec)
	if err != nil {
		return nil, err
	}
	s := handleID{comm: c.Comm, clock: clockOf(c.Comm), origin: c.origin, rank: w.Rank(), node: w.Node(), spec: w.Spec()}
	return rma.Decorate(w, func(t rma.Transport) rma.Transport { return c.wrap(s, &pendingSet{Transport: t}) }), nil
}

// handleID says of which rank and of which window a handle is.
type handleID struct {
	comm   rma.Comm     // below the decorator
	clock  func() int64 // Now, where a simulator does not tell observers from ranks
	origin int          // the caller's rank in the Comm that was decorated
	rank   int          // the caller's rank in the window
	node   rma.Node
	spec   rma.Spec
}

// clockOf is the clock for events of a Comm: a simulator has one that it does not take for the
// rank's own reading.
func clockOf(c rma.Comm) func() int64 {
	for below := c; below != nil; {
		if s, ok := below.(interface{ Clock() int64 }); ok {
			return s.Clock
		}
		u, ok := below.(rma.Unwrapper)
		if !ok {
			break
		}
		below = u.Unwrap()
	}
	return c.Now
}

// distance is how far a rank of the window is away.
func (s *handleID) distance(target int) Distance {
	switch {
	case target == s.rank:
		return Own
	case s.node.Has(target):
		return Mate
	}
	return Far
}

// A Distance says how far a target is away from the caller.
type Distance uint8

const (
	Own       Distance = iota // the caller itself
	Mate                      // another rank of its node
	Far                       // a rank of another node
	Distances                 // their number
)

func (d Distance) String() string {
	switch d {
	case Own:
		return "own"
	case Mate:
		return "mate"
	case Far:
		return "far"
	}
	return "Distance?"
}
