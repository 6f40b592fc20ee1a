package rma_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/rma"
)

// TestCheckMemory: a window larger than any machine is refused with its size.
func TestCheckMemory(t *testing.T) {
	if err := rma.CheckMemory(rma.DataSpec("small", 1), 1); err != nil {
		t.Error(err)
	}
	err := rma.CheckMemory(rma.DataSpec("large", 1<<47), 1<<20)
	if !errors.Is(err, rma.ErrMemory) || !strings.Contains(err.Error(), `window "large" takes 1.1e+12 GiB for its 140737488355328 words at each of 1048576 ranks`) {
		t.Error(err)
	}
}
