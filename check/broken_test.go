package check_test

import (
	"context"

	"github.com/rmalock/rmalock/lock"
)

// broken is a table of locks that admits all ranks.
type broken struct{ lock.Table }

func (broken) Lock(context.Context, int, lock.Mode) error { return nil }
func (broken) Unlock(int, lock.Mode) error                { return nil }
