package check_test

import (
	"context"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

type rmaComm = rma.Comm

// broken is a table of locks that lets everybody in.
type broken struct{ lock.Table }

func (broken) Lock(context.Context, int, lock.Mode) error { return nil }
func (broken) Unlock(int, lock.Mode) error                { return nil }
