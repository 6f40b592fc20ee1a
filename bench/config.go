package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rmalock/rmalock/lock"
)

var (
	// ErrConfig is wrapped by errors about a Config.
	ErrConfig = errors.New("bench: bad configuration")
	// ErrExclusion is wrapped when updates made under the lock were lost.
	ErrExclusion = errors.New("bench: the lock did not exclude")
)

// A Mode is a workload.
type Mode string

const (
	Latency Mode = "latency"
	ECSB    Mode = "ecsb"
	SOB     Mode = "sob"
	WCSB    Mode = "wcsb"
	WARB    Mode = "warb"
)

// Modes lists the workloads in the order of rma-rw, section 5.
func Modes() []Mode { return []Mode{Latency, ECSB, SOB, WCSB, WARB} }

// Config says what to measure. All ranks pass the same.
type Config struct {
	Lock string // name in the registry of package lock
	Mode Mode   // workload

	// Duration of warm-up and measurement together. 0 if Acquires is set; 1 s if
	// neither is.
	Duration time.Duration
	// Acquires of each rank, warm-up included. 0 means Duration decides.
	Acquires int

	// Locks in the table; each acquire takes one of them at random. 0 means 1.
	Locks int
	// Readers is the share of acquires in shared mode, 0 to 1. F_W of the paper is
	// 1 - Readers.
	Readers float64
}

// Validate fills in defaults and reports what is wrong. Errors wrap ErrConfig or
// lock.ErrConfig.
func (c *Config) Validate() error {
	info, err := lock.Lookup(c.Lock)
	if err != nil {
		return err
	}
	known := false
	var names []string
	for _, m := range Modes() {
		known = known || m == c.Mode
		names = append(names, string(m))
	}
	switch {
	case !known:
		return fmt.Errorf("no workload is called %q; there are: %s: %w", string(c.Mode), strings.Join(names, ", "), ErrConfig)
	case c.Duration < 0:
		return fmt.Errorf("duration is %v, want more than 0: %w", c.Duration, ErrConfig)
	case c.Acquires < 0:
		return fmt.Errorf("acquires is %d, want at least 1: %w", c.Acquires, ErrConfig)
	case c.Duration > 0 && c.Acquires > 0:
		return fmt.Errorf("duration and acquires are both set, want one of them: %w", ErrConfig)
	case c.Locks < 0:
		return fmt.Errorf("locks is %d, want at least 1: %w", c.Locks, ErrConfig)
	case !(c.Readers >= 0 && c.Readers <= 1):
		return fmt.Errorf("share of readers is %v, want 0 to 1: %w", c.Readers, ErrConfig)
	case c.Readers > 0 && !info.Shared:
		return fmt.Errorf("lock %q has no shared mode, so all acquires must be exclusive: %w", c.Lock, ErrConfig)
	}
	if c.Duration == 0 && c.Acquires == 0 {
		c.Duration = time.Second
	}
	if c.Locks == 0 {
		c.Locks = 1
	}
	return nil
}
