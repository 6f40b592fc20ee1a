//go:build cgo

package mpi

// #include "shim.h"
import "C"

import "github.com/rmalock/rmalock/rma"

// The C side repeats enumerations and sizes of rma. This does not compile where one differs, as
// the index is then not 0.
var (
	_ = [1]bool{}[C.SHIM_PUT-int(rma.KindPut)]
	_ = [1]bool{}[C.SHIM_GET-int(rma.KindGet)]
	_ = [1]bool{}[C.SHIM_ACCUMULATE-int(rma.KindAccumulate)]
	_ = [1]bool{}[C.SHIM_FETCH_AND_OP-int(rma.KindFetchAndOp)]
	_ = [1]bool{}[C.SHIM_COMPARE_AND_SWAP-int(rma.KindCompareAndSwap)]
	_ = [1]bool{}[C.SHIM_PUT_BULK-int(rma.KindPutBulk)]
	_ = [1]bool{}[C.SHIM_GET_BULK-int(rma.KindGetBulk)]
	_ = [1]bool{}[C.SHIM_GET_BULK+1-int(rma.KindMaskedSwap)]

	_ = [1]bool{}[C.SHIM_FAR-int(rma.Far)]
	_ = [1]bool{}[C.SHIM_NEAR-int(rma.Near)]
	_ = [1]bool{}[C.SHIM_FLAG-int(rma.Flag)]
	_ = [1]bool{}[C.SHIM_PLAIN-int(rma.Plain)]
	_ = [1]bool{}[C.SHIM_PLAIN+1-int(rma.Classes)]

	_ = [1]bool{}[C.SHIM_SUM-int(rma.Sum)]
	_ = [1]bool{}[C.SHIM_REPLACE-int(rma.Replace)]
	_ = [1]bool{}[C.SHIM_NO_OP-int(rma.NoOp)]

	_ = [1]bool{}[C.SHIM_EQUAL-int(rma.RelEqual)]
	_ = [1]bool{}[C.SHIM_NOT_EQUAL-int(rma.RelNotEqual)]
	_ = [1]bool{}[C.SHIM_LESS-int(rma.RelLess)]
	_ = [1]bool{}[C.SHIM_AT_LEAST-int(rma.RelAtLeast)]

	_ = [1]bool{}[C.SHIM_MAX_PENDING-rma.MaxPending]
	// The window's own words, the self-test's and rma's, fit before the user's.
	_ = [C.SHIM_HEADER_WORDS*8 - testWords*8 - rma.HeaderBytes + 1]bool{}
	_ = [futexWord*8 - (C.SHIM_HEADER_WORDS*8 - rma.HeaderBytes + 4*rma.SleeperCounts) + 1]bool{}
	_ = [C.SHIM_HEADER_WORDS - futexWord]bool{}
)
