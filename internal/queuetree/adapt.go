package queuetree

// Thresholds that move. The paper leaves T_L,i to its user (section 6 of rma-rw): a large
// one is fast, a small one lets others have the lock soon. Whether there are others shows
// when the threshold is reached and the lock goes outside. If a rank waited there, T_L,i
// is halved, down to a sixteenth of what was configured. If none did, it doubles, up to
// what was configured. Each rank moves its own. The bounds are those of the configured
// ones.

// minThreshold is a sixteenth of a threshold, and at least 1 if that is.
func minThreshold(configured int64) int64 { return configured/16 + min(configured%16, 1) }

// NextThreshold is a threshold after it has been reached, for the better if no rank
// waited outside.
func NextThreshold(now, configured int64, outerWaited bool) int64 {
	if outerWaited {
		return max(minThreshold(configured), now/2)
	}
	return min(configured, 2*now)
}

// TL is T_L,i of a level as it is now at this rank.
func (t *Tree) TL(level int) int64 { return t.tl[level] }
