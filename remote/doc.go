// Package remote allocates blocks of memory on memory nodes, or on ranks where the job has no
// memory node. Clients do it one-sidedly; the memory node runs no program.
//
// A [Heap] is a window: the user's own regions first, from displacement 0 on, then words of the
// allocator, then the memory that it gives out. The user reads and writes blocks by
// [Heap.Window], so that a block and a word of the user's own can be written in one doorbell,
// with a Fence between them. Blocks hold what the last block there has left: they are not zero.
//
// # How to use it
//
//	h, err := remote.New(c, remote.Config{
//		Name:    "index",
//		Regions: []rma.Region{{Count: 1, Words: []rma.Word{{Name: "ROOT", Class: rma.Far}}}},
//		Words:   1 << 20,        // of memory at each host
//		Classes: []int{8, 64},   // sizes of blocks, in words
//	})
//	err = h.Enter()              // what is found from here on stays until Leave
//	ref, err := h.Alloc(5)       // a block of 8 words
//	h.Window().PutBulk(data, ref.Node(), ref.Disp())
//	                             // Flush; CompareAndSwap of ROOT from old to ref
//	h.Free(old, 5)               // no client finds it any more; a reader may still read it
//	err = h.Leave()
//
// A section, from Enter to Leave, protects what the client finds in it. A block that is freed
// gets another use when all sections have ended that had begun before it was freed. So a reader
// in a section may follow a pointer to a block that others replace and free meanwhile: it reads
// what was there. One section may span many operations ([Heap.Sections]), and so costs little for
// each; while it lasts, no block freed since can be used again.
//
// Alloc and Free may be called outside a section, if the block is reached in another way that
// excludes its being freed, such as under a lock.
//
// # Leases
//
// A section lasts at most Config.Lease. A client that stays in it for longer is taken for dead:
// others no longer wait for it. Leave then returns [ErrExpired], and what the section has read may
// be garbage. The client looks at its own clock alone; clocks need run equally fast only. A change
// of a word that rests on what an expired section has found, such as a CompareAndSwap of a pointer,
// may be wrong too. So the lease must be longer than a client ever stops. The default, one second,
// is some 10^5 operations.
//
// # Words
//
//	word         class           number       where        values
//	EPOCH        far             1            host 0       number of the epoch
//	FREE         far             1            each host    words of HEAP given out since the start
//	FARFREE      far             1            each host    the same of FARHEAP
//	POOL         far             classes      host 0       pushes and pops<<48 | block of the top list
//	ENTRY        plain           clients      host 0       0 outside; section<<40 | epoch at its Enter
//	EVICTED      plain           clients      host 0       ENTRY of a section that was taken for dead
//	HEAP         plain           Words        each host    the blocks of Alloc
//	FARHEAP      far             FarWords     each host    the blocks of AllocFar
//
// # Protocol
//
// Enter writes the epoch that the client knows to its ENTRY and reads EPOCH, in one doorbell. If
// EPOCH has moved it begins again with what it read: an old entry is safe, and stands against
// the next epoch for longer. Any client may
// advance EPOCH from e to e+1 when it has read, after e, that each client is outside, evicted, or
// entered in e. So while a section lasts that entered in e, EPOCH is e or e+1. A block is
// marked with an EPOCH that is read after Free; when EPOCH is two more, every section
// has ended that began before Free.
//
// A client takes fresh memory by FetchAndOp on FREE, half a chunk at a time, and cuts blocks
// from it. Freed blocks wait in the client's list for two epochs and are then the client's
// own. What it does not need it puts into the pool: a list of blocks, whose names are in a
// block of their own, and POOL leads to the top list. Before a client takes fresh
// memory it takes a list of the pool.
//
// # Cost in remote operations
//
//	Enter   Put and Get, one doorbell; some also advance: Get and GetBulk, one doorbell, and
//	        CompareAndSwap
//	Leave   Put, which the next Flush completes
//	Alloc   0; when the client's list is empty Get, then GetBulk and CompareAndSwap, or FetchAndOp
//	Free    0; Enter gives lists to the pool: Get, PutBulk and CompareAndSwap for each list
//
// # Death
//
// A dead client's memory is lost: at most Config.Chunk words, and half a chunk more with FarWords.
// These are the rest of its half chunk, its lists, and blocks that it freed. What it freed or
// allocated in its last section comes on top. A client that frees faster than epochs advance waits
// in Enter, at most some leases, so that this holds. Nothing else waits for a dead client. Its
// operations that are still on the way when its lease ends must have taken effect by then; verbs
// and MPI see to that where their time-outs are shorter than the lease.
//
// Epochs are those of K. Fraser: Practical lock-freedom, 2004, section 5.2.3, with the leases
// and the lists of a client that may die.
package remote
