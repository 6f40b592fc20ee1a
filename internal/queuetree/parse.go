package queuetree

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/lock"
)

// ParseTL reads thresholds by level from the root in, as in "0,16,8" or, where a comma
// divides something else, "0/16/8"; "" is nil.
func ParseTL(name, text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var out []int
	for _, f := range strings.Split(strings.ReplaceAll(text, "/", ","), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil {
			return nil, fmt.Errorf("%s: TL is %q, want numbers with commas between them, one per level from the root in: %w", name, text, lock.ErrConfig)
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
