// Package plot draws runs of package bench: the figures 3 to 6 of
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw), section 5,
//
// as far as there are runs for them, each as a file, and all in one page of HTML that
// needs nothing else. [Preset] has the runs that the paper's figures take.
//
// A line is the median of the runs of a point. A band is from the least to the
// greatest of them; for runs in virtual time it covers what the machine's weak
// constants would come to at the ends of their ranges.
package plot
