//go:build !linux

package discover

import (
	"errors"

	"github.com/rmalock/rmalock/topo"
)

// affinity is not known outside Linux.
func affinity() (topo.Set, error) { return "", errors.ErrUnsupported }
