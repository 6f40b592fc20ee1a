// Package graph reads and makes lists of edges, for many ranks at once: each takes
// its share, and the shares together are the whole, whatever the number of ranks.
//
// [File] is a file in the form of the Stanford collection (SNAP), plain or
// compressed with gzip:
//
//	# Undirected graph: ../../data/output/example.txt
//	# FromNodeId	ToNodeId
//	0	11342
//	0	824020
//
// A line holds two vertices, decimal numbers from 0 to 2^63-1, separated by blanks
// or tabs. Lines that begin with # and lines without text are skipped; a carriage
// return at the end of a line is ignored, and the last line needs no line feed.
//
// [RMAT] makes the graphs of the Graph500 benchmark.
package graph
