//go:build cgo && verbs

package verbs

// #cgo CFLAGS: -std=gnu11 -O2 -Wall
// #cgo LDFLAGS: -libverbs -lpthread
// #include "nic.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// The C side repeats sizes of rma. This does not compile where one differs, as the index is then
// not 0.
var _ = [1]bool{}[C.NIC_PENDING-rma.MaxPending]

// errNoDevice is wrapped where no RDMA device can be used. It is an errors.ErrUnsupported.
var errNoDevice = fmt.Errorf("no RDMA device: %w", errors.ErrUnsupported)

// nic is an open RDMA device.
type nic struct {
	d    *C.nic_device
	text string
}

const maxWays = 1024

// ways lists the ways to all devices of the machine.
func ways() ([]C.nic_way, error) {
	found := make([]C.nic_way, maxWays)
	n := C.nic_ways(&found[0], maxWays)
	if n < 0 {
		return nil, fmt.Errorf("verbs: the kernel has no RDMA (%v): load the driver of the card, or rdma_rxe for Soft-RoCE: %w", syscall.Errno(-n), errNoDevice)
	}
	return found[:n], nil
}

// openNIC opens a device by the best of its ways; any device for "".
func openNIC(name string) (*nic, error) {
	all, err := ways()
	if err != nil {
		return nil, err
	}
	best, seen := -1, []string{}
	for i := range all {
		w := &all[i]
		seen = append(seen, wayText(w))
		if (name == "" || name == C.GoString(&w.name[0])) && rank(w) > 0 && (best < 0 || rank(w) > rank(&all[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil, fmt.Errorf("verbs: no RDMA device %s has an active port with an address and atomics; there are: %s; rmalock doctor says more: %w",
			name, strings.Join(seen, "; "), errNoDevice)
	}
	n := &nic{text: wayText(&all[best])}
	if rc := C.nic_open(&all[best], &n.d); rc != 0 {
		return nil, fmt.Errorf("verbs: %s does not open: %v: %w", n.text, syscall.Errno(rc), errNoDevice)
	}
	inUse.devices.Add(1)
	return n, nil
}

// rank orders ways, 0 for those that cannot be used.
func rank(w *C.nic_way) int {
	switch gid := gidOf(w.gid); {
	case w.active == 0 || w.atomics == C.IBV_ATOMIC_NONE:
		return 0
	case w.ethernet == 0:
		return 5
	case w.roce2 == 0 || gid.IsLinkLocalUnicast():
		return 1
	case gid.To4() != nil:
		return 4
	}
	return 3
}

func gidOf(raw [16]C.uint8_t) net.IP {
	ip := make(net.IP, 16)
	for i, b := range raw {
		ip[i] = byte(b)
	}
	return ip
}

func wayText(w *C.nic_way) string {
	kind, state := "InfiniBand", "active"
	if w.ethernet != 0 {
		kind = "RoCE v1"
		if w.roce2 != 0 {
			kind = "RoCE v2"
		}
	}
	if w.active == 0 {
		state = "not active"
	}
	return fmt.Sprintf("%s port %d, %s, GID %d %v, %s", C.GoString(&w.name[0]), w.port, kind, w.gid_index, gidOf(w.gid), state)
}

func (n *nic) describe() string { return n.text }

func (n *nic) close() error {
	C.nic_close(n.d)
	inUse.devices.Add(-1)
	return nil
}

// inUse counts what is open, for tests.
var inUse struct{ devices, regions, pairs, bytes atomic.Int64 }

// mr is registered memory.
type mr struct {
	m     *C.struct_ibv_mr
	bytes int
}

// registered registers memory outside of Go's heap.
func (n *nic) registered(memory []byte, remote bool) (*mr, error) {
	r, far := &mr{bytes: len(memory)}, 0
	if remote {
		far = 1
	}
	if rc := C.nic_register(n.d, unsafe.Pointer(unsafe.SliceData(memory)), C.uint64_t(len(memory)), C.int(far), &r.m); rc != 0 {
		return nil, fmt.Errorf("verbs: %s does not register %d bytes: %v; is the limit of locked memory (ulimit -l) high enough? %w",
			n.text, len(memory), syscall.Errno(rc), rma.ErrMemory)
	}
	inUse.regions.Add(1)
	inUse.bytes.Add(int64(r.bytes))
	return r, nil
}

func (n *nic) register(memory []byte) (region, error) { return n.registered(memory, true) }

func (r *mr) place() place {
	return place{Address: uint64(uintptr(r.m.addr)), Key: uint32(r.m.rkey)}
}

func (r *mr) close() error {
	if rc := C.ibv_dereg_mr(r.m); rc != 0 {
		return fmt.Errorf("verbs: memory cannot be given back: %v: %w", syscall.Errno(rc), rma.ErrTransport)
	}
	inUse.regions.Add(-1)
	inUse.bytes.Add(-int64(r.bytes))
	return nil
}

// pair is one end of a connection.
type pair struct{ p *C.nic_pair }

func (n *nic) newPair() (pair, error) {
	var p pair
	if rc := C.nic_pair_new(n.d, &p.p); rc != 0 {
		return p, fmt.Errorf("verbs: %s makes no more queue pairs: %v: %w", n.text, syscall.Errno(rc), rma.ErrTransport)
	}
	inUse.pairs.Add(1)
	return p, nil
}

func (p pair) close() error {
	C.nic_pair_free(p.p)
	inUse.pairs.Add(-1)
	return nil
}

// address is that of an end of a pair.
func (n *nic) address(p pair) *address {
	var c C.nic_address
	C.nic_pair_address(n.d, p.p, &c)
	a := &address{QPN: uint32(c.qpn), PSN: uint32(c.psn), LID: uint16(c.lid), MTU: uint8(c.mtu), Ethernet: c.ethernet != 0, Reads: uint8(c.reads_in)}
	copy(a.GID[:], gidOf(c.gid))
	return a
}

// connect joins a pair with its other end.
func (n *nic) connect(p pair, a *address) error {
	c := C.nic_address{
		qpn: C.uint32_t(a.QPN), psn: C.uint32_t(a.PSN & 0xffffff), lid: C.uint16_t(a.LID), mtu: C.uint8_t(max(1, min(5, a.MTU))), reads_in: C.uint8_t(a.Reads),
	}
	for i, b := range a.GID {
		c.gid[i] = C.uint8_t(b)
	}
	if a.Ethernet != (n.d.way.ethernet != 0) {
		return fmt.Errorf("verbs: %s and the other end are of different networks, InfiniBand and Ethernet: %w", n.text, rma.ErrRefused)
	}
	if rc := C.nic_pair_connect(n.d, p.p, &c); rc != 0 {
		return fmt.Errorf("verbs: %s finds no way to the address %v: %v; can both machines reach each other there? %w",
			n.text, net.IP(bytes.Clone(a.GID[:])), syscall.Errno(rc), rma.ErrTransport)
	}
	return nil
}

// pair is of card: the memory node's end of a connection.
func (n *nic) pair(to *address) (end, *address, error) {
	p, err := n.newPair()
	if err != nil {
		return nil, nil, err
	}
	if err := n.connect(p, to); err != nil {
		_ = p.close()
		return nil, nil, err
	}
	return p, n.address(p), nil
}

// Listen opens a memory node: its memory, its device and its port. Run serves.
func Listen(cfg NodeConfig) (*Server, error) {
	n, err := openNIC(cfg.Device)
	if err != nil {
		return nil, err
	}
	s, err := serve(cfg, n)
	if err != nil {
		_ = n.close()
		return nil, err
	}
	return s, nil
}

// Devices lists the ways to the machine's RDMA devices.
func Devices() ([]Device, error) {
	all, err := ways()
	if err != nil {
		return nil, err
	}
	out := make([]Device, 0, len(all))
	for i := range all {
		w := &all[i]
		link := "InfiniBand"
		if w.ethernet != 0 {
			link = "RoCE v1"
			if w.roce2 != 0 {
				link = "RoCE v2"
			}
		}
		out = append(out, Device{
			Name: C.GoString(&w.name[0]), Port: int(w.port), Link: link, Active: w.active != 0, GIDIndex: int(w.gid_index), GID: gidOf(w.gid).String(),
			LID: int(w.lid), Atomics: [...]string{"none", "HCA", "global"}[min(2, w.atomics)], Reads: int(min(w.max_reads, w.max_reads_in)),
			Pairs: int(w.max_pairs), Regions: int(w.max_regions), RegionBytes: uint64(w.max_region), MessageBytes: uint64(w.max_message), Usable: rank(w) > 0,
		})
	}
	return out, nil
}
