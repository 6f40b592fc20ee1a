package baseline

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// server runs a script on a server's handle: what it does with requests, in their order.
func server(t *testing.T, passes int, script func(ask func(what, client int, mode lock.Mode) int64, m func() *managed) error) {
	t.Helper()
	err := inproc.Run(5, func(c rma.Comm) error {
		tab, err := NewTraditional(c, TraditionalConfig{Passes: passes})
		if err != nil || !tab.Serves() {
			return err
		}
		ask := func(what, client int, mode lock.Mode) (answer int64) {
			v := request.what.With(request.mode.With(0, int64(mode)), int64(what))
			switch what {
			case askUnlock:
				err = errors.Join(err, tab.unlock(0, mode))
			case askGiveUp:
				var e error
				answer, e = tab.giveUp(0, client)
				err = errors.Join(err, e)
			default:
				answer = tab.lock(0, mode, client, v)
			}
			return answer
		}
		e := script(ask, func() *managed { return tab.managed[0] })
		return errors.Join(err, e)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPasses: while a reader holds a lock and a writer waits, so many more readers come in, and
// not one more, also if all of them have left meanwhile. The code of dslr's authors counts those
// that hold the lock, so that readers may pass a writer for ever.
func TestPasses(t *testing.T) {
	const x, s = lock.Exclusive, lock.Shared
	for _, passes := range []int{0, 1, 10} {
		server(t, passes, func(ask func(int, int, lock.Mode) int64, m func() *managed) error {
			if ask(askLock, 0, s) != answerYes || ask(askLock, 1, x) != answerNo {
				return errors.New("a reader holds, and a writer waits")
			}
			for i := range passes {
				if ask(askLock, 2, s) != answerYes {
					return fmt.Errorf("reader %d of %d does not pass", i, passes)
				}
				ask(askUnlock, 2, s)
			}
			if ask(askTry, 3, s) != answerNo || ask(askLock, 2, s) != answerNo {
				return fmt.Errorf("reader %d passes", passes)
			}
			ask(askUnlock, 0, s)
			if !m().writer || m().readers != 0 || len(m().queue) != 1 {
				return fmt.Errorf("the writer has it, and a reader waits: %+v", m())
			}
			if ask(askUnlock, 1, x); m().writer || m().readers != 1 {
				return fmt.Errorf("the reader has it: %+v", m())
			}
			if ask(askUnlock, 2, s); m() != nil {
				return fmt.Errorf("all have left: %+v", m())
			}
			return nil
		})
	}
}

// TestQueue: first come, first served; readers that follow each other share; when a writer
// gives up, the readers behind it come in.
func TestQueue(t *testing.T) {
	const x, s = lock.Exclusive, lock.Shared
	server(t, 0, func(ask func(int, int, lock.Mode) int64, m func() *managed) error {
		ask(askLock, 0, s)
		ask(askLock, 1, x)
		ask(askLock, 2, s)
		ask(askLock, 3, s)
		if len(m().queue) != 3 {
			return fmt.Errorf("a writer and two readers wait: %+v", m())
		}
		if ask(askGiveUp, 1, x) != answerNo || m().readers != 3 || len(m().queue) != 0 {
			return fmt.Errorf("the writer gave up, and the readers share: %+v", m())
		}
		if ask(askGiveUp, 2, s) != answerYes {
			return errors.New("a rank that holds the lock cannot give up")
		}
		for range 3 {
			ask(askUnlock, 0, s)
		}
		if m() != nil {
			return fmt.Errorf("all have left: %+v", m())
		}
		return nil
	})
}
