package rmarw

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rmalock/rmalock/internal/queuetree"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// MaxHeld is the number of locks of one Table that a rank may hold or wait for at
// once, in either mode. One more is lock.ErrTooManyHeld.
const MaxHeld = queuetree.MaxHeld

// MaxTR is the largest T_R: what DEPART can count in a phase.
const MaxTR = 1<<(phaseShift-1) - 1

// Config of a Table.
type Config struct {
	Locks int // number of locks; 0 means 1
	Home  int // rank that hosts the root's TAIL of lock 0; lock id is at (Home+id) mod Size
	// Topology has a place for each rank, in order; places beyond the last rank are left free.
	// Its levels are those of the tree. nil means what discover.Topology finds, with the levels
	// that topo.Topology.DefaultView picks. It finds levels inside a node only in a program
	// that imports package topo/hardware.
	Topology *topo.Topology
	// Thresholds; zero fields are filled in by Thresholds.Fill. TDC says where the
	// physical counters are; TL is T_L,i by level, and TL[0] how often writers pass the
	// lock at the root before readers get it; TR is how many readers a counter lets in
	// while a writer waits, besides those that waited themselves; a barging root does not use
	// it.
	Thresholds Thresholds
	DC         DC // zero: Asymmetric where it can be on several nodes or with a barging root, otherwise Symmetric
	// Leaf is MCS, the paper's, or Barging: writers that run pass those that wait, up to T_L,N
	// times, and readers try 16 times before they wait in line. Barging needs innermost
	// elements within nodes and, with one level, asymmetric counters. Auto is Barging with one
	// level on one node, unless it is simulated, and otherwise MCS.
	Leaf Leaf
	// Adapt moves T_L,i at run time, and with asymmetric counters T_R, between a sixteenth of
	// what Thresholds has and that (docs/decisions/0011-adapt.md). The bounds stay.
	Adapt bool
}

// A Leaf says how the writers of an innermost element wait for each other.
type Leaf = queuetree.Leaf

const (
	// Auto chooses by the levels; see Config.
	Auto = queuetree.Auto
	// MCS is a queue, first come, first served, as the paper has it.
	MCS = queuetree.MCS
	// Barging is for nodes with more ranks than cores: writers that run pass those that wait,
	// up to T_L of the leaf times.
	Barging = queuetree.Barging
)

// DC is how readers and writers meet in a physical counter.
type DC uint8

const (
	_ DC = iota
	// Symmetric is the paper's: both change the counter's words with the transport's
	// atomics, wherever they are.
	Symmetric
	// Asymmetric has readers touch only memory of their node, with CPU atomics, and
	// writers announce themselves. All readers of a counter must be on its host's node, and be
	// at most 8191.
	Asymmetric
)

var dcs = [...]string{Symmetric: "sym", Asymmetric: "asym"}

// String is the text that the parameter DC takes.
func (d DC) String() string { return dcs[d] }

func parseDC(text string) (DC, error) {
	if i := slices.Index(dcs[:], text); i >= 0 {
		return DC(i), nil
	}
	return 0, fmt.Errorf("rmarw: DC is %q, want sym or asym: %w", text, lock.ErrConfig)
}

func init() {
	lock.Register(lock.Info{
		Name:   "rmarw",
		Title:  "RMA-RW, a topology-aware reader-writer lock",
		Shared: true,
		Fair:   "writers as rmamcs; a reader is passed by C_1 writers, 2 * C_1 at an asymmetric counter; a writer at the root by (3 + (F_1-1)/(T_L,1+1)) * (K*T_R + P-1) readers, K counters",
		Params: []lock.Param{
			{Name: "TL", Help: "T_L,i by level from the root in, as in 20,50; nothing is the default"},
			{Name: "TR", Help: "T_R, readers that a counter lets in while a writer waits; a barging root does not use it"},
			{Name: "TDC", Help: "T_DC, where counters are: 16, 2 per node, every 2nd node; default 1 per node, on one node 1 per core"},
			{Name: "LEAF", Help: "mcs, or barging: writers that run may pass those that wait; default barging on one node"},
			{Name: "ADAPT", Help: "on: T_L and T_R move at run time, up to what TL and TR say; default off"},
			{Name: "DC", Help: "sym, or asym: readers touch only their node; default on several nodes, if T_DC allows, and with a barging root"},
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return New(c, Config{Locks: n, Home: home})
		},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			cfg := Config{Locks: s.Locks, Home: s.Home, Topology: s.Topology}
			var err error
			if cfg.Thresholds.TL, err = queuetree.ParseTL("rmarw", s.Params["TL"]); err != nil {
				return nil, err
			}
			if text := s.Params["TR"]; text != "" {
				if cfg.Thresholds.TR, err = strconv.ParseInt(text, 10, 64); err != nil || cfg.Thresholds.TR < 1 {
					return nil, fmt.Errorf("rmarw: TR is %q, want a number from 1 to %d, or nothing for the default: %w", text, MaxTR, lock.ErrConfig)
				}
			}
			if text := s.Params["TDC"]; text != "" {
				if cfg.Thresholds.TDC, err = ParseTDC(text); err != nil {
					return nil, err
				}
			}
			if cfg.Leaf, err = queuetree.ParseLeaf("rmarw", s.Params["LEAF"]); err != nil {
				return nil, err
			}
			if cfg.Adapt, err = queuetree.ParseSwitch("rmarw", "ADAPT", s.Params["ADAPT"]); err != nil {
				return nil, err
			}
			if text := s.Params["DC"]; text != "" {
				if cfg.DC, err = parseDC(text); err != nil {
					return nil, err
				}
			}
			return New(c, cfg)
		},
	})
}
