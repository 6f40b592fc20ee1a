package queuetree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/lock"
)

// A Leaf says how the ranks of an innermost element wait for each other.
type Leaf uint8

const (
	Auto    Leaf = iota // the lock's default
	MCS                 // in a queue, first come, first served
	Barging             // a rank that runs may pass those that wait, up to T_L of the leaf times: barging.go
)

var leaves = []string{Auto: "auto", MCS: "mcs", Barging: "barging"}

// String is the leaf in text, as ParseLeaf reads it.
func (l Leaf) String() string { return leaves[l] }

// ParseLeaf reads a lock's parameter LEAF; "" is Auto.
func ParseLeaf(lockName, text string) (Leaf, error) {
	if text == "" {
		return Auto, nil
	}
	if i := slices.Index(leaves, text); i >= 0 {
		return Leaf(i), nil
	}
	return Auto, fmt.Errorf("%s: LEAF is %q, want auto, mcs or barging: %w", lockName, text, lock.ErrConfig)
}

// ParseTL reads thresholds by level from the root in, as in "20,16,8" or, where a comma
// divides something else, "20/16/8". An empty entry, as in "/16/8", is 0, which stands for the
// default; "" is nil. Since 0 is no threshold, a 0 in the text is an error.
func ParseTL(lockName, text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var out []int
	for _, f := range strings.Split(strings.ReplaceAll(text, "/", ","), ",") {
		f = strings.TrimSpace(f)
		if f == "" {
			out = append(out, 0)
			continue
		}
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("%s: TL is %q, want numbers with commas between them, one per level from the root in: %w", lockName, text, lock.ErrConfig)
		}
		if n < 1 {
			return nil, fmt.Errorf("%s: TL is %q: entry %d is %d, want at least 1, or nothing for the default of its level: %w", lockName, text, len(out)+1, n, lock.ErrConfig)
		}
		out = append(out, n)
	}
	return out, nil
}

// ParseSwitch reads a lock's parameter that is on or off; "" is off.
func ParseSwitch(lockName, name, text string) (bool, error) {
	switch text {
	case "", "off":
		return false, nil
	case "on":
		return true, nil
	}
	return false, fmt.Errorf("%s: %s is %q, want on or off: %w", lockName, name, text, lock.ErrConfig)
}
