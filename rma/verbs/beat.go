package verbs

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// Both ends of a connection for control say something every beat, and the kernel of each ends
// the connection if the other's has not acknowledged it within the patience. So a machine that
// disappears is noticed within a second, and a process that is busy or stopped is none that is
// gone: its kernel answers.
const (
	beat            = 200 * time.Millisecond
	defaultPatience = 500 * time.Millisecond
	leastPatience   = 100 * time.Millisecond
)

// patienceOf is a patience that was asked for, or the default for 0.
func patienceOf(asked time.Duration) (time.Duration, error) {
	if asked == 0 {
		return defaultPatience, nil
	}
	if asked < leastPatience || asked > time.Hour {
		return 0, fmt.Errorf("verbs: a patience of %v: want %v to %v: %w", asked, leastPatience, time.Hour, rma.ErrSpec)
	}
	return asked, nil
}

// beating says something on a connection every beat, until it is stopped or say fails.
func beating(conn net.Conn, patience time.Duration, say func() error) (stop func()) {
	_ = endSilence(conn, patience)
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(beat, func() {
		failed := say() != nil
		mu.Lock()
		defer mu.Unlock()
		if !failed && !stopped {
			timer.Reset(beat)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
