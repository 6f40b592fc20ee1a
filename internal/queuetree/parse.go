package queuetree

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/lock"
)

// ParseTL reads thresholds by level from the root in, as in "20,16,8" or, where a comma
// divides something else, "20/16/8". An empty entry, as in "/16/8", is 0, which stands for the
// default; "" is nil. Since 0 is no threshold, a 0 in the text is an error.
func ParseTL(name, text string) ([]int, error) {
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
			return nil, fmt.Errorf("%s: TL is %q, want numbers with commas between them, one per level from the root in: %w", name, text, lock.ErrConfig)
		}
		if n < 1 {
			return nil, fmt.Errorf("%s: TL is %q: entry %d is %d, want at least 1, or nothing for the default of its level: %w", name, text, len(out)+1, n, lock.ErrConfig)
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
