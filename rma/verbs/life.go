//go:build cgo && verbs

package verbs

import (
	"fmt"
	"sync"

	"github.com/rmalock/rmalock/rma"
)

// life ends the waits of all ranks of a process when one of the job has failed.
type life struct {
	once   sync.Once
	failed chan struct{}
	cause  error
}

func newLife() *life { return &life{failed: make(chan struct{})} }

func (l *life) fail(cause error) {
	l.once.Do(func() {
		l.cause = cause
		close(l.failed)
	})
}

// check is nil while the job goes on.
func (l *life) check() error {
	select {
	case <-l.failed:
		return l.why()
	default:
		return nil
	}
}

// why is the error of a rank that was waiting when another one failed.
func (l *life) why() error {
	<-l.failed
	return fmt.Errorf("verbs: %v: %w", l.cause, rma.ErrPeer)
}
