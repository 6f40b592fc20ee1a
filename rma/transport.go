package rma

import "unsafe"

// MaxPending is the number of operations towards far ranks that a handle may have
// issued and not flushed, and the number of operations with results after which a
// [Result] is overwritten.
const MaxPending = 64

// Results holds the results of a handle's latest operations, by slot.
type Results [MaxPending]int64

// A Kind is a window operation.
type Kind uint8

const (
	KindPut Kind = iota
	KindGet
	KindAccumulate
	KindFetchAndOp
	KindCompareAndSwap
	KindPutBulk
	KindGetBulk
	KindMaskedSwap
	Kinds // their number
)

var kindNames = [...]string{"Put", "Get", "Accumulate", "FetchAndOp", "CompareAndSwap", "PutBulk", "GetBulk", "MaskedSwap"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "Kind?"
}

// Writes reports whether operations of the kind may change the word.
func (k Kind) Writes() bool { return k != KindGet && k != KindGetBulk }

// An Op is what Accumulate and FetchAndOp apply to the word.
type Op uint8

const (
	Sum     Op = iota // add, wrapping around
	Replace           // swap
	NoOp              // read atomically
)

func (o Op) String() string {
	switch o {
	case Sum:
		return "SUM"
	case Replace:
		return "REPLACE"
	case NoOp:
		return "NO_OP"
	}
	return "Op?"
}

// An Operation is one issued operation, as a Transport sees it: in range and
// allowed for the class of its word.
type Operation struct {
	Kind    Kind
	Op      Op    // of Accumulate and FetchAndOp
	Class   Class // of the word
	Target  int
	Disp    int
	Operand int64   // value, addend or replacement
	Compare int64   // of CompareAndSwap and MaskedSwap
	Slot    int     // where the result goes, in Results
	Data    []int64 // of the bulk forms
	Epoch   uint8   // fences of the handle towards the target since the last Flush of it

	SwapMask, CompareMask int64 // of MaskedSwap
}

// Follows reports whether o must take effect after p, which the same handle issued before o
// and has not flushed: a [Window.Fence] lies between them, or they share a word.
func (o *Operation) Follows(p *Operation) bool {
	return o.Target == p.Target && (p.Epoch < o.Epoch || o.Disp < p.Disp+p.Words() && p.Disp < o.Disp+o.Words())
}

// Finds reports whether the operation has a result in a slot.
func (o *Operation) Finds() bool {
	switch o.Kind {
	case KindGet, KindFetchAndOp, KindCompareAndSwap, KindMaskedSwap:
		return true
	case KindPut, KindAccumulate, KindPutBulk, KindGetBulk:
	}
	return false
}

// Matches reports whether a MaskedSwap changes a word that holds v.
func (o *Operation) Matches(v int64) bool { return (v^o.Compare)&o.CompareMask == 0 }

// Masked is what a MaskedSwap that changes a word leaves there in place of v.
func (o *Operation) Masked(v int64) int64 { return v&^o.SwapMask | o.Operand&o.SwapMask }

// Words is the number of words that the operation touches.
func (o *Operation) Words() int {
	if o.Kind == KindPutBulk || o.Kind == KindGetBulk {
		return len(o.Data)
	}
	return 1
}

// A Transport is what a backend puts behind a Window: it carries the operations
// that the Window does not do itself by CPU atomics, and it waits. A Transport
// serves one handle and is called by one goroutine at a time.
type Transport interface {
	// Issue takes an operation. It may take effect at once, at Flush or in between, but
	// after those that it Follows. o.Data is the caller's until Flush.
	Issue(o Operation)
	// Flush completes the operations issued to target, or all for target < 0, stores
	// their results and says how many stay pending.
	Flush(target int, r *Results) (pending int, err error)
	// Await waits until one of the words satisfies its condition and returns its index and
	// the value that did, or -1 after the limit.
	Await(q Waiting) (which int, v int64, err error)
	// Backoff pauses before another try at a word that last held seen; try counts
	// from 0.
	Backoff(target, disp int, seen int64, try int) error
	// SpinBriefly waits a moment for a word of the caller's to hold something else than seen.
	SpinBriefly(disp int, seen int64)
	// SyncInboundStores is Window.SyncInboundStores where some rank is far.
	SyncInboundStores() error
	// HandedOver is Window.HandedOver on an oversubscribed node.
	HandedOver(target int)
	// Wake is called after a CPU write into a part in which somebody is parked.
	Wake(target int)
	// Free closes the window. Collective.
	Free() error
}

// HeaderBytes is the space that a backend keeps before the words of every part in node
// memory. It starts with SleeperCounts 32-bit counters. Each word hashes to one of them; the
// counter is the number of ranks asleep on words of that bucket. A CPU write to a word whose
// counter is not 0 must call Wake.
const (
	HeaderBytes   = 64
	SleeperCounts = 8
)

// SleeperCount is the counter of the bucket of a word of a part.
func SleeperCount(part unsafe.Pointer, disp int) *uint32 {
	return (*uint32)(unsafe.Add(part, int(bed(disp))*4-HeaderBytes))
}

// bed spreads words that a lock changes while others sleep on their neighbours.
func bed(disp int) uint32 { return uint32(disp) * 0x9E3779B1 >> 29 }

// PartAlign is the alignment of a part: two cache lines, since prefetchers take
// them in pairs.
const PartAlign = 128

// Caps says what a window's transport can do.
type Caps struct {
	Transport     string // as Comm.Describe
	FarRanks      bool   // some rank is reached through the transport
	AtomicWithCPU bool   // the transport's atomics and the CPU's are atomic with each other
	NativeSwap    bool   // FetchAndOp(REPLACE) is one operation, and no loop of CompareAndSwap in which others may come first
	AtomicPut     bool   // Put of a Far word is one operation too
	MaskedSwap    bool   // MaskedSwapFlush is one operation, and no loop of CompareAndSwap
	CPUReads      bool   // the CPU may read the Far words of its own node, and read and write the Plain ones
}
