package queuetree

// Thresholds that move. What T_L,i should be the paper leaves to its user (section 6 of
// rma-rw): a large one is fast, a small one lets others have the lock soon. Whether there
// are others shows when the threshold is reached and the lock goes outside: if somebody
// waited there, T_L,i is halved, down to a sixteenth of what was configured; if nobody
// did, it was in vain, and T_L,i doubles, up to what was configured. Each rank moves its
// own. The bounds are those of the configured ones.

// least is a sixteenth of a threshold, and at least 1 if it is.
func least(tl int64) int64 { return tl/16 + min(tl%16, 1) }

// NextThreshold is a threshold after it has been reached.
func NextThreshold(now, most int64, wanted bool) int64 {
	if wanted {
		return max(least(most), now/2)
	}
	return min(most, 2*now)
}

// TL is T_L,i of a level as it is now at this rank.
func (t *Tree) TL(level int) int64 { return t.now[level] }
