//go:build cgo

package mpi

// #cgo linux LDFLAGS: -ldl
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// process is what this process knows of its MPI.
var process struct {
	sync.Mutex
	worlds    int // open ones
	started   bool
	level     int // MPI_THREAD_SINGLE to MULTIPLE as 0 to 3
	helper    bool
	done      bool // MPI was finalised
	library   string
	component string // of one-sided communication
	osc       string // as the library reports its selection, Open MPI only
	memory    bool   // the job has memory nodes
}

// World is the handle of a process on its job: a Comm of all ranks, and the
// job's end.
type World struct {
	*comm
	all    *comm       // with the memory nodes
	serves bool        // the caller is a memory node
	life   *liveness   // nil for none
	deaths *deathWatch // nil for none
}

// Run starts MPI, or attaches to it, runs f on all ranks and ends MPI if it
// started it. It returns f's error. A rank that fails while the others go on ends
// the whole job after two seconds, with its error on standard error.
func Run(f func(rma.Comm) error) error { return Config{}.Run(f) }

// Run is the function Run with a Config. At a rank that is a memory node it does not call f: it
// serves until the other ranks have returned from f, and returns nil.
func (cfg Config) Run(f func(rma.Comm) error) error {
	w, err := Open(cfg)
	if errors.Is(err, ErrServed) {
		return nil
	}
	if err != nil {
		if errors.Is(err, rma.ErrRefused) {
			endUnused()
		}
		return err
	}
	if err := f(w); err != nil {
		w.deaths.end()
		if !w.barrierWithin(2 * time.Second) {
			fmt.Fprintf(os.Stderr, "rmalock: rank %d: %v\n", w.Rank(), err)
			time.Sleep(flushStderrFor)
			w.Abort(1)
		}
		w.end(w.dismiss() == nil)
		return err
	}
	return w.Close()
}

// endUnused ends the MPI that an Open started which all ranks then refused: Hydra kills the
// job's other processes when one of them exits with an error and without MPI_Finalize.
func endUnused() {
	p := &process
	p.Lock()
	defer p.Unlock()
	if p.started && p.worlds == 0 && !p.done {
		finalize()
	}
}

// Open starts MPI, or attaches to it where it is started, and returns the world of all its
// ranks that are no memory nodes. Collective: a rank that waits for the others longer than the
// flush time-out returns rma.ErrPeer.
//
// At a rank that is a memory node Open serves: it returns [ErrServed] when the other ranks have
// called Close, and MPI has ended. No part of the program runs between the users' operations
// and the words: MPI carries them out inside Open.
func Open(cfg Config) (*World, error) {
	w, err := open(cfg, func(c *comm) C.int { return C.shim_comm_world(c.h, c.req) })
	if err != nil || !w.serves {
		return w, err
	}
	return nil, w.serveUntilEnd()
}

// OpenComm attaches to an intra-communicator of an MPI that other code has started, by its
// Fortran handle (MPI_Comm_c2f), which any binding can give. The communicator is duplicated.
// Collective over it, with errors as Open has them.
func OpenComm(fortran int, cfg Config) (*World, error) {
	if cfg.MemoryNodes != 0 {
		return nil, refuseAttached(cfg.MemoryNodes)
	}
	return open(cfg, func(c *comm) C.int { return C.shim_comm_fortran(C.int(fortran), c.h, c.req) })
}

func open(cfg Config, duplicate func(*comm) C.int) (*World, error) {
	p := &process
	p.Lock()
	defer p.Unlock()
	limit, err := cfg.timeout()
	if err != nil {
		return nil, err
	}
	if p.done || C.shim_finalized() != 0 {
		return nil, fmt.Errorf("mpi: MPI was finalised and cannot start again in this process: %w", rma.ErrTransport)
	}
	if p.memory || p.worlds > 0 && cfg.MemoryNodes > 0 {
		return nil, fmt.Errorf("mpi: a job with memory nodes is opened once, and this process has opened it: use that World, and its Split: %w", rma.ErrRefused)
	}
	if p.worlds == 0 {
		if err := start(cfg); err != nil {
			return nil, err
		}
	}
	if cfg.MemoryNodes > 0 && !p.started {
		return nil, refuseAttached(cfg.MemoryNodes)
	}
	c := newComm()
	if err := c.attach(duplicate, limit); err != nil {
		return nil, err
	}
	if c.oversubscribed {
		enableYield()
	}
	if err := c.checkLibrary(c.node.Count > 1 || cfg.MemoryNodes > 0); err != nil {
		return nil, err
	}
	if err := c.checkMemoryNodes(cfg.MemoryNodes); err != nil {
		return nil, err
	}
	w := &World{comm: c, all: c}
	if cfg.MemoryNodes > 0 {
		if w.comm, w.serves, err = c.divide(cfg.MemoryNodes); err != nil {
			return nil, err
		}
		p.memory = true
	}
	if w.life, err = c.newLiveness(limit); err != nil {
		return nil, err
	}
	p.worlds++
	watch(limit)
	w.deaths = c.watchDeaths()
	return w, nil
}

// checkLibrary refuses an MPI that did not start the job, or that is known to be broken where
// some words are far.
func (c *comm) checkLibrary(far bool) error {
	p := &process
	if n := jobSize(); p.started && n > 1 && c.size == 1 {
		return fmt.Errorf("mpi: the launcher started %d ranks, but %s sees one: this program was built for %s and started by another library's mpirun (use mpirun.openmpi or mpirun.mpich to match): %w",
			n, p.library, Library, rma.ErrRefused)
	}
	if !far {
		return nil
	}
	ensureTwoPs()
	if err := refuseDefects(p.library, p.osc); err != nil {
		return err
	}
	if p.level == threadMultiple && strings.HasPrefix(p.library, "Open MPI v4.") {
		return fmt.Errorf("mpi: %s over several nodes (osc/pt2pt) refuses MPI_THREAD_MULTIPLE: start MPI with MPI_THREAD_SERIALIZED or less (gompi.Start(false)), or let this package start it: %w",
			p.library, rma.ErrRefused)
	}
	return nil
}

// checkMemoryNodes refuses a number of memory nodes that the job cannot have. Collective.
func (c *comm) checkMemoryNodes(k int) error {
	if err := c.same("Open", int64(k), "memory nodes"); err != nil {
		return err
	}
	if k < 0 || k >= c.size {
		return fmt.Errorf("mpi: Config.MemoryNodes is %d and the job has %d ranks: want 0 to %d, so that a rank is left that is no memory node: %w", k, c.size, c.size-1, rma.ErrRefused)
	}
	return nil
}

// refuseAttached is the error of memory nodes in an MPI that the program has started.
func refuseAttached(k int) error {
	return fmt.Errorf("mpi: Config.MemoryNodes is %d, and the program has started MPI itself: a memory node stays inside Open until the job ends. Let Open start MPI, or use no memory nodes: %w", k, rma.ErrRefused)
}

// attach duplicates a communicator into c, and learns its ranks. A rank may never come: it may
// have ended MPI.
func (c *comm) attach(duplicate func(*comm) C.int, limit time.Duration) error {
	const what = "opening the communicator"
	if rc := duplicate(c); rc != C.MPI_SUCCESS {
		return failed(what, rc)
	}
	err := c.wait(what, limit)
	if errors.Is(err, errTimeout) {
		return fmt.Errorf("mpi: %s on %s: after %v some of its ranks have not called Open or OpenComm: they ended MPI, died or are late. RMALOCK_FLUSH_TIMEOUT sets the time: %w",
			what, host(), limit, rma.ErrPeer)
	}
	if err != nil {
		return err
	}
	return c.learn()
}

// ensureTwoPs gives Go a second P where it has one, unless the user has set GOMAXPROCS. The
// runtime's monitor takes the only P of a process from a call into C that it sees twice, some
// 75 us apart; many operations on far ranks last that long. With an idle P it waits for 10 ms.
func ensureTwoPs() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
	}
}

// start sets Open MPI's variables, starts MPI or finds it started, identifies it, and starts the
// helper.
func start(cfg Config) error {
	p := &process
	Prepare()
	var started, level C.int
	if rc := C.shim_start(&started, &level); rc != C.MPI_SUCCESS {
		return failed("MPI_Init_thread", rc)
	}
	p.started, p.level = started != 0, int(level)

	const size = 8192
	text := (*C.char)(C.malloc(size))
	defer C.free(unsafe.Pointer(text))
	var version, subversion C.int
	if rc := C.shim_versions(&version, &subversion, text, size); rc != C.MPI_SUCCESS {
		return failed("MPI_Get_version", rc)
	}
	p.library = libraryName(C.GoString(text))
	if version < 3 {
		return fmt.Errorf("mpi: %s implements MPI %d.%d; rmalock needs MPI 3.0 or later: %w", p.library, version, subversion, rma.ErrRefused)
	}
	name := C.CString("osc")
	defer C.free(unsafe.Pointer(name))
	if Library == "Open MPI" && C.shim_control_variable(name, text, size) == C.MPI_SUCCESS {
		p.osc = C.GoString(text)
	}

	p.helper = cfg.Progress == ProgressOn || cfg.Progress == ProgressAuto && (p.started || p.level == threadMultiple)
	if p.helper && p.level < threadSerialized {
		if cfg.Progress == ProgressOn {
			return fmt.Errorf("mpi: Config.Progress asks for the helper thread, but MPI was started with %s: start it with MPI_THREAD_SERIALIZED or let this package start it: %w",
				threadNames[p.level], rma.ErrRefused)
		}
		p.helper = false
	}
	if p.helper {
		if rc := C.shim_helper_start(); rc != 0 {
			return fmt.Errorf("mpi: cannot start the progress helper (pthread_create: error %d): %w", rc, rma.ErrTransport)
		}
	}
	return nil
}

const (
	threadSerialized = 2
	threadMultiple   = 3
)

var threadNames = [...]string{"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"}

// libraryName is the first line of MPI_Get_library_version, without what follows
// the version.
func libraryName(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if name, rest, ok := strings.Cut(line, ","); ok && strings.HasPrefix(rest, " package") {
		line = name // "Open MPI v4.1.4, package: ..."
	}
	if strings.HasPrefix(line, "MPICH Version:") {
		line = "MPICH " + strings.TrimSpace(strings.TrimPrefix(line, "MPICH Version:"))
	}
	return strings.TrimSpace(line)
}

// Close waits for all ranks and ends MPI if this package started it. Collective.
// Windows must have been freed. An MPI_Finalize that has not returned after a minute, a
// second with MPICH (4.0.2 hangs there over TCP), is left behind: the process may exit.
func (w *World) Close() error {
	w.deaths.end() // before the barrier, behind which ranks exit
	err := w.Barrier()
	if err == nil {
		err = w.dismiss()
	}
	w.end(err == nil)
	return err
}

// Abort ends all ranks of the job now.
func (w *World) Abort(code int) { C.shim_abort(C.int(code)) }

// finalizeTimeout is the time that MPI_Finalize has before it is left behind.
var finalizeTimeout = time.Minute

func init() {
	if Library == "MPICH" {
		finalizeTimeout = time.Second
	}
}

// end gives up the handle. With all, all ranks do so, and windows of the package are freed.
func (w *World) end(all bool) {
	p := &process
	p.Lock()
	defer p.Unlock()
	if all && w.memory != nil {
		all = w.all.Barrier() == nil
	}
	w.life.end(all)
	w.free()
	if w.all != w.comm {
		w.all.free()
	}
	if p.worlds--; p.worlds == 0 {
		unwatch()
		if p.started {
			finalize()
		}
	}
}

// finalize ends MPI for good. The caller holds process.
func finalize() {
	process.done = true
	C.shim_finalize(C.int64_t(finalizeTimeout), C.int64_t(time.Second))
}

// Do runs f, which may call MPI, while this package does not. f must not use this
// package, and should not block.
func Do(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.shim_lock()
	defer C.shim_unlock()
	f()
}

// failed makes an error of an MPI return code.
func failed(what string, rc C.int) error {
	if rc == C.SHIM_INTERCOMM {
		return fmt.Errorf("mpi: %s: the handle is that of an inter-communicator; pass an intra-communicator (MPI_Intercomm_merge makes one): %w", what, rma.ErrRefused)
	}
	if rc == C.SHIM_WRONG_THREAD {
		return fmt.Errorf("mpi: %s: MPI was started with %s and this is another thread than the one that started it: call runtime.LockOSThread in the main goroutine's init, or start MPI with MPI_THREAD_SERIALIZED: %w",
			what, threadNames[process.level], rma.ErrRefused)
	}
	text := (*C.char)(C.malloc(4096))
	defer C.free(unsafe.Pointer(text))
	C.shim_error_text(rc, text, 4096)
	return fmt.Errorf("mpi: %s: %s (%s): %w", what, C.GoString(text), process.library, rma.ErrTransport)
}

var errTimeout = errors.New("not in time")
