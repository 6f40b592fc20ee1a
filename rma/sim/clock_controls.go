package sim

// A clock has no schedule to choose and no states to compare: of what a check asks, only
// failures and functions to call have an effect.

func (k *clock) beginSchedule(c *Comm) error { return c.Barrier() }
func (k *clock) endSchedule(c *Comm) error   { return c.Barrier() }

func (k *clock) startWith(_ *rank, f func())     { f() }
func (k *clock) effectOutside(_ *rank, f func()) { f() }
func (k *clock) failWith(_ *rank, err error)     { panic(err) }

func (k *clock) elapsedSoFar() Elapsed {
	e := k.elapsed
	e.Now = k.time
	return e
}

func (k *clock) keepWindows(*rank)                {}
func (k *clock) clockForCheck(r *rank) int64      { return r.now }
func (k *clock) watch(Watcher)                    {}
func (k *clock) memoiseRanks(*rank, Snapshotter)  {}
func (k *clock) declareHome(*rank, func() uint64) {}
func (k *clock) turn(*rank, Turn)                 {}
func (k *clock) seeVisible()                      {}
func (k *clock) traces(*rank) bool                { return false }
func (k *clock) markTrace(*rank, string)          {}
func (k *clock) extraHash(func() uint64)          {}
func (k *clock) extraHashOf(func(int) uint64)     {}
func (k *clock) alikeAs(*rank, uint64)            {}
