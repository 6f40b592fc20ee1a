//go:build !linux

package topo

import "errors"

// affinity is not known outside Linux.
func affinity() (Set, error) { return "", errors.ErrUnsupported }
