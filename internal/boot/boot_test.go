package boot_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/internal/boot"
)

// TestID: on Linux a UUID without a newline, the same each time.
func TestID(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the boot id is Linux's")
	}
	require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, boot.ID())
	require.Equal(t, boot.ID(), boot.ID())
}
